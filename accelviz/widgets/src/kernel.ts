// The widget: it connects the page with its id to the kernel, and shows nothing of its own unless
// the page is not in the same document.

import { mount } from "./panel";
import { unpack } from "./pack";

// A kernel that has not answered for this long, in milliseconds, is said to be silent.
const PATIENCE = 8000;

export function bridgeOf(model) {
  const waiting = new Map();
  let sent = 0, gone = false;
  const onMessage = (message, buffers) => {
    const own = waiting.get(message.number);
    if (!own) return;
    own.heard = performance.now();
    if (message.progress) return own.progress?.(message.progress);
    waiting.delete(message.number);
    if (message.error) own.fail(new Error(message.error));
    else own.done(buffers.length ? { ...unpack(bytesOf(buffers[0])), packed: bytesOf(buffers[0]) } : {});
  };
  model.on("msg:custom", onMessage);
  const lose = () => {
    gone = true;
    for (const each of waiting.values())
      each.fail(new Error("The kernel is gone. Restart it and run this cell again."));
    waiting.clear();
  };
  model.on("comm_live_update", () => model.comm_live === false && lose());
  // JupyterLab says of a kernel that is shut down only here.
  const changed = model.widget_manager?.context?.sessionContext?.kernelChanged;
  const lost = (_, kernels) => kernels.newValue || lose();
  changed?.connect(lost);
  return {
    alive: () => !gone && model.comm_live !== false,
    ask: (question, progress) => new Promise((done, fail) => {
      const number = `${Math.random().toString(36).slice(2)}:${++sent}`;
      waiting.set(number, { done, fail, progress, heard: performance.now() });
      try {
        model.send({ number, question });
      } catch {
        lose();
      }
    }),
    tell: (question) => model.send({ number: "", question }),
    settled: (settings) => {
      if (gone) return;
      model.set("settings", { ...settings });
      model.save_changes();
    },
    close: () => {
      model.off("msg:custom", onMessage);
      changed?.disconnect(lost);
    },
  };
}

const bytesOf = (view) => new Uint8Array(view.buffer ?? view, view.byteOffset ?? 0, view.byteLength);

export function render({ model, el }) {
  const bridge = bridgeOf(model);
  const id = model.get("page");
  let stopped = false;
  const find = (tries) => {
    if (stopped) return;
    const page = globalThis.accelvizPages?.get(id);
    if (page) {
      page.bridge = bridge;
      page.repaint();
    } else if (tries) setTimeout(() => find(tries - 1), 50);
    else bridge.ask({ page: true }).then((data) => mount(el, data, bridge));
  };
  find(60);
  const onSettings = () => globalThis.accelvizPages?.get(id)?.store.set(model.get("wanted").settings);
  model.on("change:wanted", onSettings);
  return () => {
    stopped = true;
    model.off("change:wanted", onSettings);
    bridge.close();
  };
}
