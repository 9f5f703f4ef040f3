// The panel: controls on top, one group of views below. `open` shows a page without a kernel; a
// widget gives a page that is open its kernel.

import { element, quiet } from "./controls";
import { controlsOf } from "./header";
import { type Link, makeLink } from "./link";
import { unpackText } from "./pack";
import { explained } from "./share";
import { inSight } from "./sight";
import { makeStore, type Store } from "./store";
import type { Bridge, Content, Scene, Settings } from "./types";
import { degrees } from "./views/degrees";
import { loads } from "./views/loads";
import { map } from "./views/map";
import { play } from "./views/play";
import { product } from "./views/product";
import { statistics } from "./views/statistics";
import { times } from "./views/times";

/** What the views and controls may do. */
export interface Act extends Omit<Store, "scene" | "watch" | "start"> {
  follow(row: number): void;
  show(group: string): void;
  link: Link;
}

/** Draw into `host`; what is returned, if anything, is called before the next drawing. */
export type View = (host: HTMLElement, scene: Scene, act: Act) => void | (() => void);

// Groups of views, each of which fits on a screen beside the controls: name, title, and its views
// with their titles and how many twelfths of the panel they are wide.
const GROUPS: [string, string, [string, string, View, number][]][] = [
  ["product", "One row", [["product", "A row, from the graph to memory", product, 12]]],
  ["balance", "Every warp", [
    ["map", "Every warp of every block", map, 12],
    ["loads", "How much work a warp has", loads, 6],
    ["degrees", "Degrees, and how the first treats such a row", degrees, 6],
  ]],
  ["numbers", "Numbers", [
    ["statistics", "What the partition does", statistics, 7],
    ["times", "Time on a GPU", times, 5],
  ]],
  ["play", "Play", [["play", "The block, request by request", play, 12]]],
];

interface Page extends ReturnType<typeof mount> {
  bridge: Bridge | null;
}

// Pages by id, so that a widget, with a bundle of its own, finds the page that it belongs to.
const shared = globalThis as typeof globalThis & { accelvizPages?: Map<string, Page> };
export const pages = (shared.accelvizPages ??= new Map());

export function mount(host: HTMLElement, data: Content, bridge: Bridge | null = null) {
  const panel = quiet(element("div", { className: "av-panel", tabIndex: -1 }));
  const { scene, watch, start, ...actions } = makeStore(data, bridge);
  const act: Act = {
    ...actions,
    follow: (row) => actions.set({ row }),
    show: choose,
    link: makeLink(panel),
  };
  const controls = controlsOf(act, panel);
  const tabs = element("div", { className: "av-tabs", attributes: { role: "tablist" } });
  const body = element("div", { className: "av-views" });
  panel.append(controls.head, controls.box, controls.descriptions, tabs, body, controls.notes);
  host.replaceChildren(panel);
  const sight = inSight(panel, controls.box, controls.notes,
    () => panel.querySelector<HTMLElement>(".av-answer strong"));
  const groups = new Map(GROUPS.map(([name, title, views]) =>
    [name, makeGroup(name, title, views)]));
  let current = "", waiting = false, width = 0;

  function makeGroup(name: string, title: string, views: (typeof GROUPS)[number][2]) {
    const tab = quiet(element("button", {
      type: "button", textContent: title, className: "av-tab",
      dataset: { group: name, title }, attributes: { role: "tab" },
    }));
    tab.onclick = () => choose(name);
    tab.onkeydown = (event) => {
      const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
      if (!step) return;
      const names = [...groups.keys()];
      const next = names[(names.indexOf(name) + step + names.length) % names.length];
      choose(next);
      groups.get(next)!.tab.focus();
    };
    tabs.append(tab);
    const box = element("div", {
      className: "av-group", hidden: true, attributes: { "role": "tabpanel", "aria-label": title },
    });
    body.append(box);
    return { tab, box, views: views.map(([view, heading, draw, twelfths]) => {
      const canvas = element("div", { className: "av-view" });
      const section = element("section", { dataset: { view } }, [
        element("div", {
          className: "av-heading", textContent: heading,
          title: explained(heading, data.glossary ?? {}),
          attributes: { "role": "heading", "aria-level": 2 },
        }), canvas]);
      section.style.setProperty("--av-width", String(twelfths));
      box.append(section);
      return { host: canvas, draw, cleanup: null as null | void | (() => void) };
    }) };
  }

  function choose(name: string) {
    panel.dataset.shown = current = name;
    for (const [key, { tab, box }] of groups) {
      box.hidden = key !== name;
      tab.setAttribute("aria-selected", String(key === name));
      tab.tabIndex = key === name ? 0 : -1;
    }
    repaint();
  }

  /** Paint what is to be seen, once a frame at most. */
  function repaint() {
    if (waiting) return;
    waiting = true;
    requestAnimationFrame(() => {
      waiting = false;
      draw();
    });
  }

  function draw() {
    // What is taken off the screen for a moment, as JupyterLab does where the theme changes, has no
    // width; the observer tells of it once more when it is back.
    if (!panel.clientWidth) {
      width = 0;
      resized.disconnect();
      return resized.observe(panel);
    }
    const now = scene();
    controls.update(now);
    for (const view of groups.get(current)!.views) {
      view.cleanup?.();
      view.cleanup = view.draw(view.host, now, act);
    }
    sight.update();
    panel.dataset.drawn = String(Number(panel.dataset.drawn ?? 0) + 1);
  }

  watch(repaint);
  const resized = new ResizeObserver(() => { // a change of height alone is the panel's own
    if (panel.clientWidth === width) return;
    width = panel.clientWidth;
    repaint();
  });
  resized.observe(panel);
  // What stays in sight below the controls has to know how high they are.
  new ResizeObserver(() =>
    panel.style.setProperty("--av-stuck", `${controls.box.offsetHeight}px`)).observe(controls.box);
  // Canvases have the colours of the theme that they were drawn in.
  new MutationObserver(repaint)
    .observe(document.body, { attributes: true, attributeFilter: ["data-jp-theme-light"] });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", repaint);
  choose(data.settings.view ?? "product");
  start();
  return { store: actions, repaint };
}

/** Open a page that has its data in a script element of its own. */
export async function open(id: string) {
  const host = document.getElementById(id)!;
  const data = await unpackText<Content>(document.getElementById(`${id}-data`)!.textContent!);
  // A kernel may come later: what the store asks is whatever is there then.
  const proxy: Bridge = {
    alive: () => Boolean(page.bridge?.alive()),
    ask: (...request) => page.bridge!.ask(...request),
    tell: (request) => page.bridge?.tell(request),
    settingsChanged: (settings) => page.bridge?.settingsChanged?.(settings),
  };
  const trace = document.getElementById(`${id}-trace`); // of a page that was saved by itself
  if (trace)
    Object.assign(data, await unpackText<Partial<Content>>(trace.textContent!),
      { traced: JSON.parse(trace.dataset.settings!) });
  const store = document.querySelector<HTMLElement>(`.av-kept[data-page="${id}"]`);
  const stored = store?.dataset.settings;
  if (stored) { // the trace that may be there is of what was set before
    data.traced ??= data.settings;
    data.settings = { ...data.settings, ...JSON.parse(stored) as Settings };
  }
  const page: Page = { bridge: null, ...mount(host, data, proxy) };
  pages.set(id, page);
}
