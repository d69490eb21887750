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
  return { wide, broken };
}
