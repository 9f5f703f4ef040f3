// The tour: each stop asks for one action, shows what it has changed, and goes on when it was done.

import { button, html, render } from "./controls";
import { timesOfChange } from "./header";
import { count, micros, number, percent } from "./numbers";
import type { Act } from "./panel";
import type { Scene } from "./types";
import { workOf } from "./views/followed";
import { busiestRow, idlestBlock } from "./views/story";

const PAUSE = 6000; // milliseconds for which a result is shown before the next stop

interface Stop {
  group: string;
  /** What the tour does before it asks. */
  begin?(act: Act): void;
  /** CSS selector of the element that is framed; a stop without it is left out. */
  where: string;
  ask: string;
  /** Whether the reader has done it since the scene `then`, and what can be seen now. */
  isDone(now: Scene, then: Scene, pressed: (selector: string) => boolean): boolean;
  result(now: Scene, then: Scene, text: (selector: string) => string): string;
}

const hasOtherParameters = (now: Scene, then: Scene) => now.a.key !== then.a.key;

/** How idle share and recorded time of the first setting have changed. */
function changesOf({ a: now, b }: Pick<Scene, "a" | "b">, { a: then }: Scene) {
  const [was, is] = timesOfChange(then, now, b) ?? [];
  const time = was && is
    ? `, the time from ${micros(was.median)} to ${micros(is.median)}` : "";
  return `The idle share went from ${percent(then.summary.idle_share)} to ${
    percent(now.summary.idle_share)}${time}.`;
}

const STOPS: Stop[] = [
  {
    group: "product", where: "[data-control=row]",
    ask: "All pictures follow one row of the matrix. Drag this slider, or press an arrow key on " +
      "it: follow another row.",
    isDone: (now, then) => now.settings.row !== then.settings.row,
    result: ({ settings: { row, block }, graph }) =>
      `Row ${number(row)} has ${count(graph.degrees[row], "nonzero")}; it is in block ${
        number(block)}.`,
  },
  {
    group: "product", where: ".av-of-block .av-draw",
    begin(act) { // a block of which there is something to ask
      const { a } = act.scene();
      if (!a.partition?.blocks || !a.hardware) return;
      const block = idlestBlock(a), row = busiestRow(a, workOf(a, a.partition, block));
      if (row !== null) act.set({ row, block }, true);
    },
    ask: "Here is the block that idles most, with its longest row. A bar is a warp of the block, " +
      "which lasts as long as its busiest warp; hatched time is idle. Point at a bar, or press " +
      "Tab and arrow keys: does that warp idle, and why?",
    isDone: (_, __, pressed) => pressed(".av-of-block [data-f*='warp:'], .av-of-block svg"),
    result: (_, __, text) => text(".av-tip"),
  },
  {
    group: "product", where: ".av-parameters > *",
    ask: "This determines how the strategy divides the work. Will another value make the idle " +
      "share above smaller or larger? Change it.",
    isDone: hasOtherParameters,
    result: changesOf,
  },
  {
    group: "balance", where: "[data-control=worst]",
    ask: "Above is every warp of every block; its colour is its number of nonzeros. Which block " +
      "idles most? Press this button.",
    isDone: (_, __, pressed) => pressed("[data-control$=worst]"),
    result: (_, __, text) => text(".av-worst").replace(/^\s*Worst block\s*Next worst\s*/, ""),
  },
  {
    group: "numbers", where: "[data-control=pin]",
    ask: "To compare, keep the first setting as the second: press Pin first.",
    isDone: (_, __, pressed) => pressed("[data-control=pin]"),
    result: () => "Both settings are the same now: no number below differs.",
  },
  {
    group: "numbers", where: ".av-parameters > *",
    ask: "Change the first setting once more: which numbers below become better, which worse?",
    isDone: hasOtherParameters,
    result: changesOf,
  },
  {
    group: "numbers", where: "[data-control=fastest]",
    ask: "Less idling is not always less time: blocks, metadata and atomics take time, too. " +
      "Press this button for the fastest setting that was recorded.",
    isDone: (_, __, pressed) => pressed("[data-control=fastest]"),
    result: ({ a, b }, then) => `${a.label}. ${changesOf({ a, b }, then)}`,
  },
  {
    group: "play", where: "[data-view=play]",
    ask: "This is a run of one block in the emulator, request by request. Press Play, or the " +
      "button that leads to it: which array is read most, and is a warp hatched, because it idles?",
    isDone: (_, __, pressed) => pressed("[data-control='play Play'], .av-tracks"),
    result: (_, __, text) => text(".av-request"),
  },
];

/** Start the tour: a box in the panel. Without `playable` the stop of the group "play" is left
 *  out. */
export function tour(panel: HTMLElement, act: Act, playable: boolean) {
  const stops = STOPS.filter(({ group }) => group !== "play" || playable);
  const box = Object.assign(document.createElement("div"), { className: "av-tour", tabIndex: -1 });
  box.dataset.lmSuppressShortcuts = "true";
  box.setAttribute("role", "dialog");
  box.setAttribute("aria-label", "tour");
  const listening = new AbortController();
  let at = 0, then = act.scene(), result = "", timer = 0, direction = 1;
  const unmark = () => panel.querySelector(".av-toured")?.classList.remove("av-toured");
  const text = (selector: string) =>
    panel.querySelector<HTMLElement>(`${selector}:not([hidden])`)?.innerText.trim() ?? "";
  const afterDrawing = (act: () => void) =>
    requestAnimationFrame(() => requestAnimationFrame(() => box.isConnected && act()));

  function end() {
    clearTimeout(timer);
    listening.abort();
    unmark();
    box.remove();
  }

  /** Show the result of an action at the current stop, and go on after a while. */
  function check(event: Event) {
    const stop = at, target = event.target as Element;
    if (box.contains(target)) return;
    afterDrawing(() => {
      const now = act.scene(), { isDone, result: resultOf } = stops[stop];
      const pressed = (selector: string) => Boolean(target.closest(selector)) &&
        (event.type !== "pointermove" && event.type !== "keyup" || Boolean(text(".av-tip")));
      if (stop !== at || !isDone(now, then, pressed)) return;
      const seen = resultOf(now, then, text);
      if (seen === result && event.type === "pointermove") return;
      result = seen;
      draw();
      clearTimeout(timer);
      timer = window.setTimeout(() => go(at + 1), PAUSE);
    });
  }

  function go(stop: number) {
    clearTimeout(timer);
    direction = stop < at ? -1 : 1;
    if (stop >= stops.length) return end();
    at = Math.max(stop, 0);
    result = "";
    act.show(stops[at].group);
    stops[at].begin?.(act);
    then = act.scene(); // before any frame, in which a key could change it already
    unmark();
    draw();
    afterDrawing(() => {
      const target = panel.querySelector<HTMLElement>(stops[at].where);
      if (!target?.getClientRects().length) return go(at ? at + direction : 1);
      target.classList.add("av-toured");
      const tall = target.getBoundingClientRect().height > window.innerHeight * 0.7;
      target.scrollIntoView({ block: tall ? "start" : "center" });
    });
  }

  const draw = () => render(html`<div class="av-tour-text"><p><b>${at + 1} of ${
    stops.length}.</b> ${stops[at].ask}</p><p role="status">${
    result && html`<b>✓</b> ${result}`}</p></div>${[
    button("back", "Back", "", () => go(at - 1), { disabled: !at }),
    button("next", at + 1 === stops.length ? "Done" : result ? "Next" : "Skip", "",
      () => go(at + 1)),
    button("end", "End", "", end)]}`, box);

  panel.querySelector<HTMLElement>(".av-tour [data-control=end]")?.click(); // an earlier tour
  for (const kind of ["click", "input", "change", "keyup", "pointermove"])
    panel.addEventListener(kind, check, { signal: listening.signal });
  box.addEventListener("keydown", (event) => event.key === "Escape" && end());
  panel.append(box);
  go(0);
  box.querySelector<HTMLElement>("[data-control=next]")!.focus();
}
