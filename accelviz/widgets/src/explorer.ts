// Entry point of the explorer's bundle. A page calls `open`, a notebook's widget `render`; tests
// compare the other exports with Python.

import "./panel.css";
import "./views.css";

export { openGraph } from "./graph";
export { hardwareOf } from "./hardware";
export { render } from "./kernel";
export { unpackText } from "./pack";
export { open } from "./panel";
export { SCHEMES } from "./schemes";
export { makeStore } from "./store";
export { followedRow, owningWarps, sectorsOfWarp, workerSentence } from "./views/followed";
