() => {
  const wide = document.documentElement.scrollWidth > document.documentElement.clientWidth + 1;
  const broken = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let node; (node = walker.nextNode());) {
    const parent = node.parentElement;
    if (!parent || parent.closest("svg, script, style, pre, code, .md-search, .md-nav, .md-source-file")) continue;
    if (!parent.checkVisibility({ visibilityProperty: true })) continue;
    for (const found of node.data.matchAll(/[\p{Script=Latin}\p{N}]{2,}/gu)) {
      const range = document.createRange();
      range.setStart(node, found.index);
      range.setEnd(node, found.index + found[0].length);
      const lines = new Set([...range.getClientRects()].filter((box) => box.width > 0).map((box) => Math.round(box.top)));
      if (lines.size > 1) broken.push(found[0]);
    }
  }
  const ground = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  for (const part of [document.documentElement, document.body]) {
    ground.fillStyle = getComputedStyle(part).backgroundColor;
    ground.fillRect(0, 0, 1, 1);
  }
  const [red, green, blue, opaque] = ground.getImageData(0, 0, 1, 1).data;
  const dark = opaque ? red + green + blue < 384 : matchMedia("(prefers-color-scheme: dark)").matches;
  return { wide, broken, dark };
}
