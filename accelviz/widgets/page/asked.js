// What pages that ask have in common: their data, their panel, and what was answered before.

import { element } from "./controls.js";
import { unpackText } from "./pack.js";

// What was answered is kept while the tab is open, so that a cell may run again.
const keeper = (key) => ({
  read() {
    try {
      return JSON.parse(sessionStorage.getItem(key));
    } catch { // some pages have no storage
      return null;
    }
  },
  write(value) {
    try {
      sessionStorage.setItem(key, JSON.stringify(value));
    } catch {
      // then it is asked again
    }
  },
});

/** Fill the page of this id; `draw(panel, data, kept)` puts into the panel what it asks. */
export async function fill(id, draw) {
  const data = await unpackText(document.getElementById(`${id}-data`).textContent);
  const panel = element("div", { className: "av-panel av-asked", tabIndex: -1 });
  document.getElementById(id).replaceChildren(panel);
  draw(panel, data, keeper(`accelviz ${data.key}`));
}
