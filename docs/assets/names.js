// The theme's search dialog has no name of its own for a screen reader.
document.querySelector(".md-search")?.setAttribute("aria-label", document.documentElement.lang === "zh" ? "搜索" : "Search");
