// The top of the panel: the headline with times and idle shares, the buttons, and the controls.

import { button, html, menu, slider, steps } from "./controls";
import { difference, micros, number, idleShareText } from "./numbers";
import type { Act } from "./panel";
import { pythonCall, headingOf, savePng } from "./share";
import { tour } from "./tour";
import type { Parameter, Scene, Side, Strategy, Tree } from "./types";

/** Names of the two settings compared, as in Python. "A" and "B" would name matrices. */
export const SIDES = ["first", "second"];
const SIDE_TITLES = [
  "First: the setting in the controls.",
  "Second: the setting that the first is compared with. Choose its strategy, or press Pin first.",
];

export const markOf = (i: number) =>
  html`<span class="av-mark av-${"AB"[i]}" title=${SIDE_TITLES[i]}>${SIDES[i]}</span>`;

export function headline(scene: Scene, act: Act, panel: HTMLElement) {
  const { a, b, graph, operation } = scene;
  const copyCode = async () => {
    const text = pythonCall(scene);
    // A page opened from a file has no access to the clipboard.
    const copied = await navigator.clipboard?.writeText(text).then(() => true, () => false);
    act.say(copied ? `Copied: ${text}` : `Copy this: ${text}`, copied);
  };
  return html`<div class="av-head"><div class="av-graph">${
    operation.name === "spmm" ? "" : `${operation.name} on `}<b>${
    graph.name}</b>, ${number(graph.rows)} rows, ${number(graph.nnz)} nonzeros</div>
    <div class="av-buttons">${[
      button("undo", "Undo", "Undo the last change (Ctrl+Z)", act.undo,
        { disabled: !scene.canUndo }),
      button("redo", "Redo", "Redo (Ctrl+Shift+Z)", act.redo, { disabled: !scene.canRedo }),
      button("reset", "Reset", "Back to the settings of the call", act.reset),
      button("code", "Copy as code", "The call that opens the explorer like this", copyCode),
      button("png", "PNG", "Save the pictures that are seen as PNG",
        () => void savePng(panel, graph.name, headingOf(scene, panel))),
      button("tour", "Tour", "A tour of the panel in which you do things, three minutes",
        () => tour(panel, act, scene.hasKernel || scene.tracedSettings !== null)),
    ]}</div></div><div class="av-headline" aria-live="polite">${sideLine(a, 0, scene.before)}${
      b ? sideLine(b, 1, null)
        : html`<div class="av-of-side">${markOf(1)} nothing to compare with</div>`}</div>`;
}

/** The controls. The strategy's parameters come last: their number varies. */
export function controlPanel(scene: Scene, act: Act) {
  const { a, b, settings, strategies, first } = scene;
  const strategyOptions = strategies.map(({ name, summary }) =>
    [name, `${name}: ${summary}`] as [string, string]);
  // The chosen second strategy is labelled with its settings.
  const secondOptions = strategyOptions.map(([name, text]): [string, string] =>
    [name, name === b?.strategy ? b.label : text]);
  return html`<div class="av-controls" role="group" aria-label="settings">
    ${menu("graph", "graph", "The graph whose adjacency matrix is A",
      scene.graphs.map((name) => [name, name]), settings.graph, (graph) => act.set({ graph }))}
    ${menu("first", html`${markOf(0)}<span title=${FIRST}>strategy</span>`, FIRST, strategyOptions,
      settings.first, (value) => act.set({ first: value }))}
    <div class="av-control av-compare">${menu("second", markOf(1), "The strategy that " +
    "the first is compared with, in its default setting or in the pinned one",
    [["", "nothing"], ...secondOptions],
    settings.second ?? "", (value) =>
      act.set({ second: value || null, pinned: {}, pinnedSorted: false }))}${
      button("pin", "Pin first", "Keep the first setting as the second, and change the first " +
      "from here on", act.pin)}${
      button("swap", "Swap", "The second becomes the first, and the first the second", act.swap,
        { disabled: !b })}</div>
    ${slider("n_cols", "columns", "Columns of a row of features: numbers that each nonzero is " +
    "multiplied with", scene.columns, settings.nCols, (nCols) => act.set({ nCols }))}
    ${steps("row", "follow row", "The row of the matrix, a node of the graph, that all pictures " +
    "follow", scene.graph.rows - 1, settings.row, act.follow)}
    ${steps("block", "block", "The block of warps that is shown: one of those that have the row",
      (a.partition?.blocks ?? 0) - 1, settings.block, (block) => act.set({ block }))}
    ${menu("sorted", "rows", SORTED, a.isSortable ? ROW_ORDERS
      : [["", a.order ? "by degree, as the strategy does" : "as the strategy does"]],
    a.sorted ? "yes" : "", (value) => act.set({ sorted: value === "yes" }))}
    <div class="av-parameters">${
  first.parameters.filter((parameter) => needsControl(first, parameter, a))
    .map((parameter) => parameterControl(parameter, a, act))}</div></div>`;
}

const SORTED = "The order in which the first strategy walks the rows. By degree: what degree " +
  "sorting alone changes. Nothing was recorded of rows that are sorted beforehand.";
const ROW_ORDERS: [string, string][] =
  [["", "in the graph's order"], ["yes", "sorted by degree beforehand"]];

const FIRST = "The strategy of the first setting: how the nonzeros are divided among blocks and " +
  "warps. Strategies of other operations are in panels of their own: accelviz.explore(graph, " +
  'operation="gat")';

function parameterControl({ name, meaning, values }: Parameter, side: Side, act: Act) {
  const title = `${name}, of the first setting: ${meaning}.`, value = side.parameters[name];
  const isNumber = values.some((offered) => typeof offered === "number");
  return isNumber ? slider(name, name, title, values, value,
    (wanted) => act.set({ parameters: { [name]: wanted } }), side.resolved[name])
    : menu(name, name, title, values.map(String).map((text) => [text, text]), String(value),
        (text) => act.set(
          { parameters: { [name]: values.find((offered) => String(offered) === text)! } }));
}

/** Summaries of both strategies. The space below the controls is reserved for the controls of the
 *  strategy with the most parameters, so that the rest of the panel keeps its place. The summaries
 *  use this space, whose height `--av-spare-N` holds for a layout with N controls per line. */
export function strategySummaries({ a, b, first, strategies }: Scene, panel: HTMLElement) {
  const count = first.parameters.filter((parameter) => needsControl(first, parameter, a)).length;
  const largestCount = Math.max(count, ...strategies.map((strategy) =>
    strategy.parameters.filter((parameter) => needsControl(strategy, parameter)).length));
  for (const across of [2, 3, 4])
    panel.style.setProperty(`--av-spare-${across}`,
      `${controlsHeight(largestCount, across) - controlsHeight(count, across)}px`);
  return html`<div class="av-descriptions">${[a, b?.text === a.text ? null : b].map(
    (side, i) => side && html`<div><b>${SIDES[i]}</b> ${side.strategy}: ${
      side.text}.</div>`)}</div>`;
}

/** Height in pixels of controls of 28 pixels with gaps of 4, `across` of them per line. */
const controlsHeight = (controls: number, across: number) =>
  Math.max(0, 32 * Math.ceil(controls / across) - 4);

const IDLE_TITLE = "A block lasts as long as its busiest warp; during this share of the time of " +
  "all warps of the hardware, a warp has no nonzero to sum. A setting with a smaller share can " +
  "still be slower: blocks, metadata, atomics and memory accesses also take time.";

/** A side in the headline: its time on a GPU and the idle share of its warp time. */
function sideLine(side: Side, i: number, before: Side | null) {
  const { label, description, summary, needsList, times: { recorded, runName } } = side;
  const title = !recorded ? "This setting was not measured; of settings between measured ones " +
    "nothing is said." : `Median time of the kernel, measured on ${
    runName(recorded.run).replace(", ", " on ")}, and not where this page is open. Half of the ` +
    `repeats took ${micros(recorded.low)} to ${micros(recorded.high)}.`;
  // Times of different runs are not compared.
  const timeBefore = before?.times.recorded;
  const isComparable = recorded !== null && timeBefore?.run === recorded.run;
  const than = before ? `Than with ${before.label}, before the last change.` : "";
  const points = than && `${than} pt: percentage points.`;
  // With `needsList`, Python must list the workload first.
  const waiting = !Number.isNaN(summary.idle_share)
    ? `${idleShareText(side)} of warp time idle`
    : needsList ? "its warps are not listed here" : "does not say what its warps do";
  return html`<div class="av-of-side">${markOf(i)} <span title=${description}>${label}</span>: ${
    recorded ? html`<b title=${title}>${micros(recorded.median)}</b> ` : ""}<span
    title=${title}>${recorded ? "recorded" : "no time recorded"}</span>${isComparable
      ? differenceText(recorded.median, timeBefore!.median, micros, than,
          (by) => by > 0 ? "av-worse" : "av-better") : ""}, <span
    title=${IDLE_TITLE}>${waiting}</span>${
      differenceText(100 * summary.idle_share, 100 * (before?.summary.idle_share ?? NaN),
        (by) => `${by.toFixed(1)} pt`, points)}</div>`;
}

/** The difference to the value before the last change, as "(+1.2 µs)" with one decimal; empty if
 *  zero or not known. `title` is its tooltip, `classOf` returns the CSS class of a difference. */
function differenceText(
  valueNow: number | null, valueBefore: number | null | undefined, format: (by: number) => string,
  title: string, classOf: (by: number) => string = () => "",
) {
  const change = difference(valueNow ?? NaN, valueBefore ?? NaN, 1);
  return change ? html` <span class=${classOf(change)} title=${title}>(${change > 0 ? "+" : "−"}${
    format(Math.abs(change))})</span>` : "";
}

/** Names of the controls on which a decision tree depends. */
const controlsIn = (tree: Tree): string[] => tree === null || typeof tree !== "object" ? []
  : [tree.over, ...tree.each.flatMap(controlsIn)];

/** Whether a parameter has several values and changes the partition or the recorded time. */
function needsControl({ scheme }: Strategy, parameter: Parameter, side: Side | null = null) {
  const { name, values, value, default: defaultValue } = parameter;
  if (values.length < 2) return false;
  if (!scheme) return true; // Python computes the workload, which may depend on each parameter
  const trees = [scheme.kind, ...Object.values({ ...scheme.arguments, ...scheme.lanes })];
  const changesPartition = trees.some((tree) => controlsIn(tree).includes(name));
  const hasCurve = name in (side?.times.curves ?? {}); // times of several of its values
  // A text or flag chooses another kernel; its times can be compared where times are recorded.
  const choosesKernel = typeof value !== "number" &&
    ["boolean", "string"].includes(typeof defaultValue);
  return changesPartition || hasCurve ||
    choosesKernel && Boolean(side?.times.recorded);
}
