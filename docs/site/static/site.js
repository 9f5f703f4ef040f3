// Whoever has no mouse scrolls a box that is too narrow for its text with the arrow keys, once it has the focus.
"use strict";

const BOXES = "pre, .table-wrapper, .wide, .cell_output .text_html";

function updateTabStops() {
  for (const box of document.querySelectorAll(BOXES)) {
    if (box.scrollWidth > box.clientWidth) box.tabIndex = 0;
    else box.removeAttribute("tabindex");
  }
}

for (const [selector, label] of [[".sidebar-drawer", "All pages"], [".toc-drawer", "This page"]]) {
  document.querySelector(selector)?.setAttribute("aria-label", label);
}
addEventListener("load", updateTabStops);
addEventListener("resize", updateTabStops);
