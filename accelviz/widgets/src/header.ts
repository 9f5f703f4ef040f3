// The top of the panel: the headline with times and idle shares, the buttons, and the controls.

import { button, html, menu, slider, steps } from "./controls";
import { count, difference, micros, number, idleShareText, percent } from "./numbers";
import type { Act } from "./panel";
import { pythonCall, headingOf, savePng } from "./share";
import {
  quartilesOverlap, type Recorded, spreadText, timesBeside, timesOfOneRun,
} from "./times";
import { tour } from "./tour";
import { causesOf } from "./views/charts";
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
  const { a, b, graph, operation } = scene, times = timesBeside(a, b);
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
    ]}</div></div><div class="av-headline" aria-live="polite">${
      sideLine(a, 0, times[0], scene.before)}${b ? sideLine(b, 1, times[1], null)
      : html`<div class="av-of-side">${markOf(1)} nothing to compare with</div>`}</div>`;
}

/** The controls. The strategy's parameters come last: their number varies. */
export function controlPanel(scene: Scene, act: Act) {
  const { a, b, settings, strategies, first } = scene;
  const strategyOptions = strategies.map(({ name, summary }) =>
    [name, `${name}: ${summary}`] as [string, string]);
  // The chosen strategies are named without their summaries, which menus would cut.
  const firstOptions = strategyOptions.map(([name, text]): [string, string] =>
    [name, name === settings.first ? name : text]);
  const secondOptions = strategyOptions.map(([name, text]): [string, string] =>
    [name, name === b?.strategy ? b.label : text]);
  return html`<div class="av-controls" role="group" aria-label="settings">
    ${menu("graph", "graph", scene.graphs.length > 1 ? GRAPH : `${GRAPH} ${ONE_GRAPH}`,
      scene.graphs.map((name) => [name, name]), settings.graph, (graph) => act.set({ graph }))}
    ${menu("first", html`${markOf(0)}<span title=${FIRST}>strategy</span>`, FIRST, firstOptions,
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
    "multiplied with", scene.columns, settings.nCols, (nCols) => act.set({ nCols }),
    sayBeside(act, "n_cols"))}
    ${steps("row", "follow row", "The row of the matrix, a node of the graph, that all pictures " +
    "follow", scene.graph.rows - 1, settings.row, act.follow, act.say)}
    ${steps("block", "block",
      "The block of warps that is shown: the followed row's, until another is chosen",
      (a.partition?.blocks ?? 0) - 1, settings.block, (block) => act.set({ block }), act.say)}
    ${menu("sorted", "rows", a.isSortable ? SORTED : NOT_SORTABLE, a.isSortable ? ROW_ORDERS
      : [["", a.order ? "by degree, as the strategy does" : "as the strategy does"]],
    a.sorted ? "yes" : "", (value) => act.set({ sorted: value === "yes" }))}
    <div class="av-parameters">${
  first.parameters.filter((parameter) => needsControl(first, parameter, a))
    .map((parameter) => parameterControl(parameter, a, act))}</div></div>`;
}

const GRAPH = "The graph whose adjacency matrix is A.";
const ONE_GRAPH = "Other graphs need a kernel: open this page in a notebook.";
const SORTED = "The order in which the first strategy walks the rows. By degree: what degree " +
  "sorting alone changes. Nothing was recorded of rows that are sorted beforehand.";
const NOT_SORTABLE = "The order in which the first strategy walks the rows. It has no other one: " +
  "its partition is made for this order. accel_gcn has the graph's order with partition warp.";
const ROW_ORDERS: [string, string][] =
  [["", "in the graph's order"], ["yes", "sorted by degree beforehand"]];

const FIRST = "The strategy of the first setting: how the nonzeros are divided among blocks and " +
  "warps. Strategies of other operations are in panels of their own: accelviz.explore(graph, " +
  'operation="gat")';

/** Tell that a typed value was replaced, and how a page with it is made. */
export const sayBeside = (act: Act, name: string) => (text: string, between?: number) =>
  act.say(between === undefined ? text
    : `${text} accelviz.explore(..., ${name}=${between}) makes a page with ${between}, too.`);

function parameterControl({ name, meaning, values }: Parameter, side: Side, act: Act) {
  const title = `${name}, of the first setting: ${meaning}.`, value = side.parameters[name];
  const isNumber = values.some((offered) => typeof offered === "number");
  return isNumber ? slider(name, name, title, values, value,
    (wanted) => act.set({ parameters: { [name]: wanted } }), sayBeside(act, name),
    side.resolved[name])
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

/** The GPU of a run's name: "H200" of "NVIDIA H200, 2026-11-22". */
const gpuOf = (run: string) => run.split(",")[0].replace("NVIDIA ", "");

/** A side in the headline: its time on a GPU and the idle share of its warp time. */
function sideLine(side: Side, i: number, recorded: Recorded | null, before: Side | null) {
  const { label, description, summary, needsList, times: { records, runName } } = side;
  const others = records.filter(({ run }) => run !== recorded?.run);
  const title = !recorded ? "This setting was not measured; of settings between measured ones " +
    "nothing is said." : `Median time of the kernel, measured on ${
    runName(recorded.run).replace(", ", " on ")}, and not where this page is open. Half of the ` +
    `repeats took ${spreadText(recorded)}.${others.map(({ median, run }) =>
      ` In the run of ${runName(run)} it took ${micros(median)}.`).join("")}`;
  const medians = records.map(({ median }) => median);
  const range = records.length < 2 ? "" : html` <span title=${title}>(${
    spreadText({ low: Math.min(...medians), high: Math.max(...medians) }).replace(" µs", "")} in ${
    records.length} runs)</span>`;
  // With `needsList`, Python must list the workload first.
  const waiting = !Number.isNaN(summary.idle_share)
    ? `${idleShareText(side)} of warp time idle`
    : needsList ? "its warps are not listed here" : "does not say what its warps do";
  return html`<div class="av-of-side">${markOf(i)} <span title=${description}>${label}</span>: ${
    recorded ? html`<b title=${title}>${micros(recorded.median)}</b> ` : ""}<span
    title=${title}>${recorded ? `on ${gpuOf(runName(recorded.run))}`
      : "no time recorded"}</span>${range}, <span
    title=${IDLE_TITLE}>${waiting}</span>${before ? beforeText(side, recorded, before) : ""}</div>`;
}

/** Time and idle share before the last change, as far as they have changed: "(before: 7.8 µs,
 *  16.2 %)". The time is one of the same run as the time now: others are not compared. */
function beforeText(side: Side, recorded: Recorded | null, before: Side) {
  const pair = recorded && timesOfOneRun({ records: [recorded] }, before.times);
  const share = idleShareText(before);
  const slower = pair ? difference(pair[0].median, pair[1].median, 1) : 0;
  const facts = [slower && html`<span class=${slower > 0 ? "av-worse" : "av-better"}>${
    micros(pair![1].median)}</span>`, share !== idleShareText(side) && share].filter(Boolean);
  const ofRun = pair ? ` The time is one of the same run, ${side.times.runName(pair[1].run)}.` : "";
  return facts.length ? html` <span title="Before the last change: ${before.label}.${
    ofRun}">(before: ${facts.map((fact, i) => html`${i ? ", " : ""}${fact}`)})</span>` : "";
}

/** Recorded times of a setting before and after a change, in one run: that of the headline. */
export function timesOfChange(before: Side, now: Side, second: Side | null = null) {
  const [shown] = timesBeside(now, second);
  const pair = shown && timesOfOneRun({ records: [shown] }, before.times);
  return pair ? [pair[1], pair[0]] : timesOfOneRun(before.times, now.times);
}

/** Why the idle share and the warp time, or the recorded time, went to opposite sides with the last
 *  change of the first setting; empty if they did not. */
export function contradictionText({ a, b, before, operation }: Scene) {
  if (!before) return "";
  const [was, is] = [before.summary, a.summary], pair = timesOfChange(before, a, b);
  const share = difference(100 * is.idle_share, 100 * was.idle_share, 1);
  const [rose, less] = share > 0 ? ["rose", "less"] : ["fell", "more"];
  const slots = (is.slots ?? NaN) - (was.slots ?? NaN);
  const time = pair && !quartilesOverlap(pair[0], pair[1]) ? pair[1].median - pair[0].median : 0;
  if (!share || !(share * slots < 0) && !(share * time < 0)) return "";
  const went = `The idle share ${rose}, ${percent(was.idle_share)} to ${percent(is.idle_share)}`;
  const timeText = share * time < 0
    ? `the kernel took ${less} time, ${micros(pair![0].median)} before and ${
      micros(pair![1].median)} now, in one run` : "";
  const steps = ({ slots, steps }: Side["summary"]) =>
    `${count(slots!, "step")}, ${number(slots! - steps!)} of them idle`;
  const by = (before: number, now: number) =>
    `${now < before ? "fell" : "rose"} by ${percent(Math.abs(now / before - 1), 0)}`;
  const [slower, faster] = time > 0 ? [a, before] : [before, a];
  const causes = causesOf(slower, faster, operation.at_nonzeros);
  if (!(share * slots < 0))
    return `${went}, but ${timeText}. ${causes.length
      ? `The slower setting has more ${causes.join("; ")}.`
      : "What is counted here does not say why."}`;
  const alike = a.rowPerLane && a.sorted !== before.sorted
    ? " A warp lasts as long as the longest of its 32 rows, and sorted rows of a warp are alike."
    : "";
  return `${went}, but there is ${less} warp time: ${steps(was)}, before; ${steps(is)}, now. ` +
    `Idle steps ${by(was.slots! - was.steps!, is.slots! - is.steps!)}, busy ones ${
      by(was.steps!, is.steps!)}.${alike}${timeText && ` Likewise ${timeText}.`}`;
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
