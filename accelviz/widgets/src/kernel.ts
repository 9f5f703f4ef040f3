// The widget's front end: it connects the page with its id to the notebook kernel. It draws the
// page itself only if the page is not in the same document. `connection.py` is the other end.

import { unpack } from "./pack";
import { mount, pages } from "./panel";
import type { Answer, Bridge, Content, Request, Settings } from "./types";

interface Model {
  comm_live?: boolean;
  widget_manager?: { context?: { sessionContext?: { kernelChanged?: Signal } } };
  get(name: "page"): string;
  get(name: "wanted"): { settings: Settings };
  set(name: string, value: unknown): void;
  save_changes(): void;
  send(message: unknown): void;
  on(name: string, act: (...values: never[]) => void): void;
  off(name: string, act: (...values: never[]) => void): void;
}

type Slot = (sender: unknown, kernels: { newValue: unknown }) => void;
interface Signal {
  connect(slot: Slot): void;
  disconnect(slot: Slot): void;
}

interface PendingRequest {
  resolve(answer: Answer): void; reject(error: Error): void; progress?: (text: string) => void;
}

function makeBridge(model: Model): Bridge & { close(): void } {
  const pending = new Map<string, PendingRequest>();
  let sent = 0, isClosed = false;
  const onMessage = (
    { number, progress, error }: Record<"number" | "progress" | "error", string>,
    [view]: DataView[],
  ) => {
    const request = pending.get(number);
    if (!request) return;
    if (progress) return request.progress?.(progress);
    pending.delete(number);
    if (error) return request.reject(new Error(error));
    request.resolve(unpack(new Uint8Array(
      view.buffer ?? view, view.byteOffset ?? 0, view.byteLength)));
  };
  model.on("msg:custom", onMessage);
  const disconnect = () => {
    isClosed = true;
    for (const { reject } of pending.values())
      reject(new Error("The kernel is gone. Restart it and run this cell again."));
    pending.clear();
  };
  model.on("comm_live_update", () => model.comm_live === false && disconnect());
  // JupyterLab reports a kernel that was shut down only through this signal.
  const kernelChanged = model.widget_manager?.context?.sessionContext?.kernelChanged;
  const onKernel: Slot = (_, kernels) => kernels.newValue || disconnect();
  kernelChanged?.connect(onKernel);
  return {
    isConnected: () => !isClosed && model.comm_live !== false,
    ask: (request: Request, progress) => new Promise((resolve, reject) => {
      const number = `${Math.random().toString(36).slice(2)}:${++sent}`;
      pending.set(number, { resolve, reject, progress });
      try {
        model.send({ number, request });
      } catch {
        disconnect();
      }
    }),
    tell: (request) => model.send({ number: "", request }),
    settingsChanged(settings) {
      if (isClosed) return;
      model.set("settings", { ...settings });
      model.save_changes();
    },
    close() {
      model.off("msg:custom", onMessage);
      kernelChanged?.disconnect(onKernel);
    },
  };
}

export function render({ model, el }: { model: Model; el: HTMLElement }) {
  const bridge = makeBridge(model), id = model.get("page");
  let stopped = false;
  const connect = (tries: number) => {
    const page = pages.get(id);
    if (stopped) return;
    if (page) {
      page.bridge = bridge;
      page.repaint();
    } else if (tries) setTimeout(() => connect(tries - 1), 50);
    else bridge.ask({ page: true }).then((data) => mount(el, data as unknown as Content, bridge));
  };
  connect(60);
  const onSettings = () => pages.get(id)?.store.set(model.get("wanted").settings);
  model.on("change:wanted", onSettings);
  return () => {
    stopped = true;
    model.off("change:wanted", onSettings);
    bridge.close();
  };
}
