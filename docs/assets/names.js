// The theme's search dialog has no name of its own for a screen reader.
document.querySelector(".md-search")?.setAttribute("aria-label", document.documentElement.lang === "zh" ? "搜索" : "Search");
// The choice of colors is the system's: its hidden switches are not for the keyboard.
for (const hidden of document.querySelectorAll(".md-option[aria-hidden]")) hidden.tabIndex = -1;
// What scrolls within a page can be scrolled by the keyboard.
const reachable = () => {
  for (const box of document.querySelectorAll(".md-typeset__scrollwrap, .md-typeset table, .md-typeset pre > code, .md-typeset p:has(> img, > math), .formula")) {
    if (box.scrollWidth > box.clientWidth) box.tabIndex = 0;
  }
};
addEventListener("load", reachable);
addEventListener("resize", reachable);
