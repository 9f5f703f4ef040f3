// The explorer's bundle: a saved page calls `open`, a notebook's widget `render`. The rest is what
// the tests compare with Python.

import "./panel.css";
import "./views.css";

export { openGraph } from "./graph";
export { render } from "./kernel";
export { unpackText } from "./pack";
export { open } from "./panel";
export { SCHEMES } from "./schemes";
export { makeStore } from "./store";
export { followed, hardware } from "./views/followed";
