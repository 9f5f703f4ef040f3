// The panel: controls on top, one group of views below. `open` shows a page without a kernel,
// `connect` gives a page that is there already a kernel.

import { element, quiet } from "./controls";
import { controlsOf } from "./header";
import { makeLink } from "./link";
import { explained } from "./share";
import { inSight } from "./sight";
import { makeStore } from "./store";
import { unpackText } from "./pack";
import { degrees } from "./views/degrees";
import { loads } from "./views/loads";
import { map } from "./views/map";
import { play } from "./views/play";
import { product } from "./views/product";
import { statistics } from "./views/statistics";
import { times } from "./views/times";

// Groups of views, each of which fits on a screen beside the controls: name, title, and its views
// with their titles and how many twelfths of the panel they are wide.
const GROUPS = [
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

// Pages by id, so that a widget finds the page it belongs to.
const pages = (globalThis.accelvizPages ??= new Map());

export function mount(host, data, bridge = null) {
  const panel = quiet(element("div", { className: "av-panel", tabIndex: -1 }));
  const store = makeStore(data, bridge);
  const act = {
    set: store.set, ask: store.ask, undo: store.undo, redo: store.redo, reset: store.reset,
    pin: store.pin, swap: store.swap, trace: store.trace, replay: store.replay, cancel: store.cancel, say: store.say,
    follow: (row) => store.set({ row }),
    showBlock: (block) => store.set({ block }),
    show: (group) => choose(group),
    link: makeLink(panel),
  };
  const controls = controlsOf(act, panel);
  const tabs = element("div", { className: "av-tabs", attributes: { role: "tablist" } });
  const body = element("div", { className: "av-views" });
  panel.append(controls.head, controls.box, controls.what, tabs, body, controls.notes);
  host.replaceChildren(panel);
  const sight = inSight(panel, controls.box, controls.notes, () => panel.querySelector(".av-answer strong"));

  const groups = new Map(GROUPS.map(([name, title, views]) => [name, makeGroup(name, title, views)]));
  let shown = null, waiting = false;

  function makeGroup(name, title, views) {
    const tab = quiet(element("button", { type: "button", textContent: title, className: "av-tab",
      dataset: { group: name, title }, attributes: { role: "tab" } }));
    tab.onclick = () => choose(name);
    tab.onkeydown = (event) => {
      const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
      if (!step) return;
      const names = [...groups.keys()];
      const next = names[(names.indexOf(name) + step + names.length) % names.length];
      choose(next);
      groups.get(next).tab.focus();
    };
    tabs.append(tab);
    const box = element("div", { className: "av-group", hidden: true,
      attributes: { role: "tabpanel", "aria-label": title } });
    const own = views.map(([view, heading, draw, width]) => {
      const canvas = element("div", { className: "av-view" });
      const title = explained(heading, data.glossary ?? {});
      const section = element("section", { dataset: { view } }, [
        element("div", { className: "av-heading", textContent: heading, title,
          attributes: { role: "heading", "aria-level": 2 } }), canvas]);
      section.style.setProperty("--av-width", width);
      box.append(section);
      return { host: canvas, draw, drawn: null };
    });
    body.append(box);
    return { tab, box, views: own };
  }

  function choose(name) {
    panel.dataset.shown = shown = name;
    for (const [key, { tab, box }] of groups) {
      box.hidden = key !== name;
      tab.setAttribute("aria-selected", key === name);
      tab.tabIndex = key === name ? 0 : -1;
    }
    repaint();
  }

  // One repaint a frame at most, of what is to be seen.
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
    const scene = store.scene();
    controls.update(scene);
    for (const view of groups.get(shown).views) {
      view.cleanup?.();
      view.cleanup = view.draw(view.host, scene, act) ?? null;
    }
    sight.update();
    panel.dataset.drawn = Number(panel.dataset.drawn ?? 0) + 1;
  }

  store.watch(repaint);
  let width = 0; // a change of height alone is the panel's own
  const resized = new ResizeObserver(() => {
    if (panel.clientWidth === width) return;
    width = panel.clientWidth;
    repaint();
  });
  resized.observe(panel);
  // What stays in sight below the controls has to know how high they are.
  const grown = new ResizeObserver(() =>
    panel.style.setProperty("--av-stuck", `${controls.box.offsetHeight}px`));
  grown.observe(controls.box);
  // Canvases have the colours of the theme that they were drawn in.
  const themed = new MutationObserver(repaint), dark = matchMedia("(prefers-color-scheme: dark)");
  themed.observe(document.body, { attributes: true, attributeFilter: ["data-jp-theme-light"] });
  dark.addEventListener("change", repaint);
  choose(data.settings.view ?? "product");
  store.start();
  return { store, panel, choose, repaint, close };

  function close() {
    resized.disconnect();
    grown.disconnect();
    themed.disconnect();
    sight.close();
    dark.removeEventListener("change", repaint);
  }
}

// A page that has its data in a script element of its own.
export async function open(id, bridge = null) {
  const host = document.getElementById(id);
  const data = await unpackText(document.getElementById(`${id}-data`).textContent);
  const page = { bridge };
  // A kernel may come later: what the store asks is whatever is there then.
  page.proxy = {
    alive: () => Boolean(page.bridge?.alive()),
    ask: (...question) => page.bridge.ask(...question),
    tell: (question) => page.bridge?.tell(question),
    settled: (settings) => page.bridge?.settled?.(settings),
  };
  const own = document.getElementById(`${id}-trace`); // what a page was given when it was saved
  if (own) Object.assign(data, await unpackText(own.textContent), { traced: JSON.parse(own.dataset.settings) });
  const kept = document.querySelector(`.av-kept[data-page="${id}"]`)?.dataset.settings;
  if (kept) { // the trace that may be there is of what was set before
    data.traced ??= data.settings;
    data.settings = { ...data.settings, ...JSON.parse(kept) };
  }
  Object.assign(page, mount(host, data, page.proxy));
  pages.set(id, page);
  return page;
}
