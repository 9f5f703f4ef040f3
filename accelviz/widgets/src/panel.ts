// The panel: controls at the top, and below them one of four groups of views, chosen by tabs.
// `open` shows a page without a kernel; a widget (kernel.ts) connects an open page to its kernel.

import { button, html, render } from "./controls";
import { contradictionText, controlPanel, strategySummaries, headline } from "./header";
import { type Link, makeLink } from "./link";
import { unpackText } from "./pack";
import { glossaryText } from "./share";
import { keepVisible } from "./visibleCopy";
import { makeStore, type Scene, type Store } from "./store";
import { followTheme } from "./theme";
import type { Bridge, Content } from "./types";
import { degrees, loads, times } from "./views/charts";
import { map } from "./views/map";
import { play } from "./views/play";
import { product } from "./views/product";
import { recorded } from "./views/recorded";
import { statistics } from "./views/statistics";
import { story } from "./views/story";

export interface Act extends Omit<Store, "addListener" | "start"> {
  follow(row: number): void;
  show(group: string): void;
  /** What a group does before another one is shown. */
  leaving: Map<string, (next: string) => void>;
  link: Link;
}

/** A function that prepares an element, and returns a function that draws scenes in it. */
export type View = (host: HTMLElement, act: Act) => (scene: Scene) => void;

// Groups of views: name, title, and views, each with name, title, function, and width in twelfths
// of the panel.
const GROUPS: [string, string, [string, string, View, number][]][] = [
  ["story", "Story", [["story", "Why warps idle, in five steps", story, 12]]],
  ["product", "One row", [["product", "A row, from the graph to memory", product, 12]]],
  ["balance", "Every warp", [
    ["map", "Every warp of every block", map, 12],
    ["loads", "How much work a warp has", loads, 6],
    ["degrees", "Degrees, and how the first treats such a row", degrees, 6],
  ]],
  ["numbers", "Numbers", [
    ["statistics", "What the partition does", statistics, 7],
    ["times", "Time on a GPU", times, 5],
    ["recorded", "All times recorded on this graph", recorded, 12],
  ]],
  ["play", "Play", [["play", "The block, request by request", play, 12]]],
];
const NAMES = GROUPS.map(([name]) => name);
// A reader who has left the story for all controls finds them again.
const REMEMBERED = "accelviz group";

function rememberedGroup() {
  try {
    const name = localStorage.getItem(REMEMBERED);
    return name && NAMES.includes(name) ? name : NAMES[0];
  } catch { // some pages have no storage
    return NAMES[0];
  }
}

function remember(name: string) {
  try {
    localStorage.setItem(REMEMBERED, name);
  } catch {
    // the next page begins with the story
  }
}

interface Page extends ReturnType<typeof mount> {
  bridge: Bridge | null;
}

// Open pages by id. They are global because a widget runs a second copy of this bundle.
const shared = globalThis as typeof globalThis & { accelvizPages?: Map<string, Page> };
export const pages = (shared.accelvizPages ??= new Map());

/** Build a panel in `host`; returns its store's actions and `repaint`. */
export function mount(host: HTMLElement, data: Content, bridge: Bridge | null = null) {
  const panel = Object.assign(document.createElement("div"),
    { className: "av-panel", tabIndex: -1 });
  panel.dataset.lmSuppressShortcuts = "true";
  host.replaceChildren(panel);
  const { scene, addListener, start, ...actions } = makeStore(data, bridge);
  let currentGroup = rememberedGroup(), isScheduled = false, width = 0;
  let closed = ""; // the explanation that the reader has closed
  start();
  const act: Act = {
    ...actions,
    scene,
    follow: (row) => actions.set({ row }),
    show: chooseGroup,
    leaving: new Map(),
    link: makeLink(panel),
  };

  const tab = ([name, title]: (typeof GROUPS)[number]) => html`<button type="button" role="tab"
    class="av-tab" data-group=${name} data-title=${title} data-lm-suppress-shortcuts="true"
    aria-selected=${name === currentGroup} tabindex=${name === currentGroup ? 0 : -1}
    @click=${() => chooseGroup(name)} @keydown=${({ key }: KeyboardEvent) => {
      const step = { ArrowRight: 1, ArrowLeft: -1 }[key];
      if (!step) return;
      chooseGroup(NAMES[(NAMES.indexOf(name) + step + NAMES.length) % NAMES.length]);
      panel.querySelector<HTMLElement>(`[data-group=${currentGroup}]`)!.focus();
    }}>${title}</button>`;

  const group = ([name, title, views]: (typeof GROUPS)[number]) => html`<div class="av-group"
    role="tabpanel" aria-label=${title} ?hidden=${name !== currentGroup}>${
      views.map(([view, heading, , twelfths]) => html`<section data-view=${view}
      style="--av-width: ${twelfths}"><div class="av-heading" role="heading" aria-level="2"
      title=${glossaryText(heading, data.glossary ?? {})}>${heading}</div><div
      class="av-view"></div></section>`)}</div>`;

  const close = (name: string, act: () => void) =>
    button(`close ${name}`, "", "Close this note", act, { ariaLabel: "close this note" });

  function renderFrame(state: Scene) {
    // The story answers in its own words.
    const contradiction = currentGroup === "story" ? "" : contradictionText(state);
    // Messages come below the views, so that they move nothing, and stay visible (CSS "sticky").
    render(html`${headline(state, act, panel)}${controlPanel(state, act)}${
      strategySummaries(state, panel)}
      <div class="av-tabs" role="tablist">${GROUPS.map(tab)}</div>
      <div class="av-views">${GROUPS.map(group)}</div>
      <div class="av-notes"><div class="av-message ${state.warns ? "" : "av-gentle"}" role="alert"
        ?hidden=${!state.message}>${close("message", () => act.say(""))}${
          state.message}</div><div
        class="av-why" role="status" ?hidden=${!contradiction || Boolean(state.message) ||
        contradiction === closed}>${close("why", () => {
          closed = contradiction;
          repaint();
        })}${contradiction}</div><div class="av-progress"
        ?hidden=${!state.progress}><span role="status">${state.progress}</span> ${
          button("cancel", "Cancel", "Do not wait for it", act.cancel)}</div></div>`, panel);
    panel.dataset.shown = currentGroup;
  }

  renderFrame(scene());
  const controlsBox = panel.querySelector<HTMLElement>(".av-controls")!;
  const visibleCopy = keepVisible(panel, controlsBox, panel.querySelector(".av-notes")!,
    () => panel.querySelector<HTMLElement>(".av-answer strong"));
  const viewFunctions = Object.fromEntries(GROUPS.map(([name, , views]) => [name, views.map(
    ([view, , make]) => make(panel.querySelector(`[data-view=${view}] > .av-view`)!, act))]));

  function chooseGroup(name: string) {
    if (name !== currentGroup) act.leaving.get(currentGroup)?.(name);
    currentGroup = name;
    remember(name);
    renderFrame(scene());
    repaint();
  }

  /** Draw the current group in the next animation frame. */
  function repaint() {
    if (isScheduled) return;
    isScheduled = true;
    requestAnimationFrame(() => {
      isScheduled = false;
      draw();
    });
  }

  function draw() {
    // JupyterLab detaches outputs for a moment when the theme changes. A detached panel has no
    // width; observing it again triggers a drawing once it is back.
    if (!panel.clientWidth) {
      width = 0;
      widthObserver.disconnect();
      return widthObserver.observe(panel);
    }
    const newScene = scene();
    renderFrame(newScene);
    for (const view of viewFunctions[currentGroup]) view(newScene);
    visibleCopy.update();
    panel.dataset.drawn = String(Number(panel.dataset.drawn ?? 0) + 1);
  }

  const onUndoKey = (event: KeyboardEvent) => {
    if (!(event.ctrlKey || event.metaKey) || event.key.toLowerCase() !== "z") return;
    event.preventDefault();
    event.stopPropagation();
    if (event.shiftKey) act.redo();
    else act.undo();
  };
  panel.addEventListener("keydown", onUndoKey);
  // Where nothing has the focus, the keys are those of the only panel.
  document.addEventListener("keydown", (event) => {
    if (event.target === document.body && panel.isConnected &&
      document.querySelectorAll(".av-panel").length === 1) onUndoKey(event);
  });
  // The browser's own undo, as in a field's menu, would take back the text of one field only.
  panel.addEventListener("beforeinput", (event) => {
    const step = { historyUndo: act.undo, historyRedo: act.redo }[event.inputType];
    if (!step) return;
    event.preventDefault();
    step();
  });
  addListener(repaint);
  const widthObserver = new ResizeObserver(() => { // changes of height alone need no drawing
    if (panel.clientWidth === width) return;
    width = panel.clientWidth;
    repaint();
  });
  widthObserver.observe(panel);
  // CSS places sticky elements below headline and controls, and needs their heights.
  const headlineBox = panel.querySelector<HTMLElement>(".av-headline")!;
  const heights = new ResizeObserver(() => {
    const head = headlineBox.offsetHeight;
    panel.style.setProperty("--av-head", `${head}px`);
    panel.style.setProperty("--av-stuck", `${head + controlsBox.offsetHeight}px`);
  });
  const notes = panel.querySelector<HTMLElement>(".av-notes")!;
  const noteHeights = new ResizeObserver(() =>
    panel.style.setProperty("--av-notes", `${notes.offsetHeight}px`));
  noteHeights.observe(notes);
  for (const box of [headlineBox, controlsBox]) heights.observe(box);
  followTheme(panel, repaint); // canvases do not follow a change of theme: they are drawn again
  return { store: actions, repaint };
}

/** Open the page with this id, whose data are in the script element "<id>-data". */
export async function open(id: string) {
  const host = document.getElementById(id)!;
  const data = await unpackText<Content>(document.getElementById(`${id}-data`)!.textContent!);
  const page = { bridge: null } as Page;
  // The kernel connects later, if at all: `proxy` forwards to the bridge of that time.
  const proxy: Bridge = {
    isConnected: () => Boolean(page.bridge?.isConnected()),
    ask: (...request) => page.bridge!.ask(...request),
    tell: (request) => page.bridge?.tell(request),
    settingsChanged: (settings) => page.bridge?.settingsChanged?.(settings),
  };
  const stored = document.querySelector<HTMLElement>(`.av-stored[data-page="${id}"]`)?.dataset;
  if (stored?.settings) Object.assign(data.settings, JSON.parse(stored.settings));
  pages.set(id, Object.assign(page, mount(host, data, proxy)));
}
