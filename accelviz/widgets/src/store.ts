// The explorer's state. `set` changes the settings; `scene` returns everything that the views draw
// for them. A side is one of the two settings compared, with its partition, statistics and times.
// The store caches sides, records the history for undo, and requests data from the kernel.

import { type Graph, openGraph } from "./graph";
import { hardwareOf, type WorkerLanes } from "./hardware";
import { clamp, parameterText, makeCache, valueOrRule } from "./numbers";
import { ALREADY_SORTED, SCHEMES, sortedPartition } from "./schemes";
import { openListedWorkload } from "./schemes/listed";
import { type Partition, summaryOf } from "./schemes/partition";
import { timesOf } from "./times";
import type {
  Answer, Arguments, Bridge, Content, Reading, Request, Settings, Strategy, Tree, Value, Values,
} from "./types";

// Number of cached partitions, and of steps that undo can take back.
const CACHED = 8, MAX_UNDO = 200;
// Milliseconds within which repeated changes of the same settings are one step of undo.
const STEP_TIME = 700;
// Milliseconds for which a confirmation is shown.
const CONFIRMATION_TIME = 4000;

export type Store = ReturnType<typeof makeStore>;
/** Everything that the views draw for the current settings. */
export type Scene = ReturnType<Store["scene"]>;
/** One of the two settings compared, with its partition, statistics and times. */
export type Side = Scene["a"];
/** New values of some settings; an undefined parameter returns to its default. */
type Change = Partial<Omit<Settings, "parameters">> &
  { parameters?: Record<string, Value | undefined> };

interface Opened {
  graph: Graph; times: Content["graph"]["times"]; strategies: Strategy[];
}

export function makeStore(data: Content, bridge: Bridge | null = null) {
  const opened = new Map<string, Opened>();
  const lists = new Map<string, ReturnType<typeof openListedWorkload>>();
  const sides = makeCache<ReturnType<typeof makeSide>>(2 * CACHED);
  const partitions = makeCache<Partition | null>(CACHED);
  const past: Settings[] = [], future: Settings[] = [];
  addData(data);
  const blank = {
    pinned: {}, parameters: {}, row: 0, block: 0, sorted: false, pinnedSorted: false,
  };
  const initial: Settings = { ...blank, ...data.settings };
  // A notebook may have been saved while another graph was being loaded.
  if (!opened.has(initial.graph)) initial.graph = data.graph.name;
  let settings = initial, lastChange = { keys: "", time: 0 }, refused = "", messageTimer = 0;
  let tracedSettings = data.trace ? initial : null;
  const current = () => opened.get(settings.graph)!;
  const strategyOf = (wanted: string) => current().strategies.find(({ name }) => name === wanted)!;
  const listeners = new Set<() => void>();
  const state = {
    busy: 0, progress: "", message: "", gentle: false,
    trace: tracedSettings && { key: traceKey(tracedSettings), content: data.trace! },
  };

  function sideOf(name: string, values: Values, { graph, nCols } = settings, sorted = false) {
    const strategy = strategyOf(name);
    // Values that the strategy does not offer are replaced by its defaults.
    const parameters: Values = Object.fromEntries(strategy.parameters.map((parameter) => {
      const value = values[parameter.name], { name, values: offered } = parameter;
      return [name, offered.includes(value) ? value : parameter.default];
    }));
    const key = keyOf({ graph, strategy: name, nCols, parameters }) + (sorted ? " sorted" : "");
    return sides(`${key} ${lists.has(key)}`, () =>
      makeSide(strategy, parameters, opened.get(graph)!, nCols, key, sorted));
  }

  /** A side of the scene; null if the strategy refuses the parameters. */
  function makeSide(
    strategy: Strategy, parameters: Values, { graph, times }: Opened, nCols: number, key: string,
    wantsSorted: boolean,
  ) {
    const { owner } = strategy;
    const lookUp = (columns: number) =>
      lookUpScheme(strategy, data.columns, columns, parameters, graph.name);
    const workload = strategy.scheme ? undefined : lists.get(key), chosen = lookUp(nCols);
    if (strategy.scheme && !chosen) return null;
    const isSortable = Boolean(chosen && !ALREADY_SORTED.has(chosen.scheme));
    const sorted = wantsSorted && isSortable;
    const partitionKey = (chosen?.key ?? key) + (sorted ? " sorted" : "");
    const partition = chosen ? partitions(partitionKey, () => sorted
      ? sortedPartition(graph, SCHEMES[chosen.scheme], chosen.arguments)
      : SCHEMES[chosen.scheme](graph, chosen.arguments)) : workload?.partition ?? null;
    const hardware = chosen && partition
      ? hardwareOf(partition.warps, chosen.workers, chosen.reading, nCols)
      : workload?.hardware ?? null;
    const summary = chosen && partition ? partition.summary(nCols, hardware!)
      : workload?.summary ?? summaryOf({});
    // A combined warp is made of hardware warps: it is no warp itself.
    const worker = strategy.worker === "warp" && hardware?.isCombined ? "combined warp"
      : strategy.worker;
    const needsList = !strategy.scheme && !workload, reading = chosen?.reading ?? null;
    const resolved: Record<string, Value | undefined> =
      { ...chosen?.resolved, ...workload?.resolved };
    let recorded: ReturnType<typeof timesOf> | undefined, starts: Float64Array | undefined;
    return {
      strategy: strategy.name, worker, owner, parameters, resolved, partition, summary, hardware,
      /** Whether its workload must be listed by Python, and has not been yet. */
      needsList, nCols, key, partitionKey, reading,
      /** What it does with another number of columns, in one line; "" if always the same. */
      textWith: (columns: number) =>
        (data.columns.includes(columns) && lookUp(columns)?.text) || "",
      /** Why there is no partition to draw. */
      missingReason: chosen?.scheme === "library" ? "A library does not say which warp does what."
        : needsList ? "Python lists which of its warps does what; that takes a running kernel."
          : "Its warps work on tiles of the matrix together: none has nonzeros of its own.",
      label: labelOf(strategy, parameters, resolved) + (sorted ? ", rows sorted" : ""),
      /** Whether its rows are sorted beforehand, and whether they could be. */
      sorted, isSortable,
      /** What it does, in one line. */
      text: chosen?.text || strategy.summary,
      description: describeSettings(strategy, chosen?.text || strategy.summary, parameters,
        resolved),
      order: partition?.order ?? null,
      /** Position of a row's first nonzero in the kernel's order. */
      startOf: (position: number) => {
        starts ??= startsOf(graph, partition!.order!);
        return starts[position];
      },
      positionOf: partition?.positionOf ?? ((row: number) => row),
      scheme: chosen?.scheme ?? null,
      arguments: chosen?.arguments ?? null,
      bytes: parameters.storage && parameters.storage !== "float32" ? 2 : 4,
      /** Products of a nonzero: one for each attention head, or column of an unfused kernel. */
      heads: chosen?.arguments.heads ?? 1,
      /** Whether each lane of a warp computes a different row. */
      rowPerLane: hardware?.rowPerLane ?? false,
      get times() {
        return recorded ??= timesOf(sorted ? undefined : times, strategy, nCols, parameters);
      },
    };
  }

  /** Complete settings: a block of the row or, if `isChosen`, any block. */
  function withRowAndBlock(settings: Settings, isChosen: boolean): Settings {
    const { graph } = opened.get(settings.graph)!;
    const partition =
      sideOf(settings.first, settings.parameters, settings, settings.sorted)?.partition;
    const row = clamp(settings.row, 0, Math.max(graph.rows - 1, 0));
    if (!partition?.blocks) return { ...settings, row, block: 0 };
    const block = clamp(settings.block, 0, partition.blocks - 1);
    if (isChosen) return { ...settings, row, block };
    const [low, high] = graph.rows ? partition.blocksOf(partition.positionOf(row)) : [];
    return { ...settings, row, block: low === undefined ? block : clamp(block, low, high) };
  }

  /** Change settings; unless `isBlockChosen`, the block shown is one of the row's. */
  function set(change: Change, isBlockChosen = "block" in change && !("row" in change)) {
    const complete = { ...settings, ...change,
      parameters: { ...settings.parameters, ...change.parameters } as Values };
    if (change.graph && !opened.has(change.graph))
      return void ask({ graph: change.graph }, change);
    if (change.graph && change.graph !== settings.graph && !("row" in change)) {
      const { degrees, largest } = opened.get(change.graph)!.graph;
      complete.row = degrees.indexOf(largest); // the longest row shows most about a partition
    }
    const before = settings;
    settings = complete; // `sideOf` reads the graph from here
    const isAccepted = sideOf(complete.first, complete.parameters) &&
      (complete.second === null || sideOf(complete.second, complete.pinned));
    refused = isAccepted ? "" : "The strategy cannot have these values together.";
    if (isAccepted) settings = withRowAndBlock(settings, isBlockChosen);
    if (!isAccepted || JSON.stringify(settings) === JSON.stringify(before)) { // nothing to undo
      settings = before;
      return notify();
    }
    if (!state.gentle) state.message = ""; // the message concerned the settings before
    addToHistory(before, Object.keys(change.parameters ?? change).join());
    notify();
    for (const side of [scene().a, scene().b])
      if (side?.needsList) {
        const { strategy, nCols, parameters } = side;
        ask({ listed: { strategy, nCols, parameters } });
      }
    bridge?.settingsChanged?.(settings);
  }

  function addToHistory(before: Settings, keys: string) {
    const time = performance.now();
    if (keys !== lastChange.keys || time - lastChange.time > STEP_TIME || !past.length)
      past.push(before);
    if (past.length > MAX_UNDO) past.shift();
    lastChange = { keys, time };
    future.length = 0;
  }

  function restore(from: Settings[], to: Settings[]) {
    const other = from.pop();
    if (!other) return;
    to.push(settings);
    settings = other;
    lastChange = { keys: "", time: 0 };
    notify();
    bridge?.settingsChanged?.(settings);
  }

  /** Request data from the kernel, and apply the change `followUp` once they have arrived. */
  async function ask(request: Request, followUp: Change | null = null) {
    if (!bridge?.isConnected())
      return say("No kernel answers here: run the cell again to ask for that.");
    const settingsThen = settings;
    state.busy += 1;
    notify();
    try {
      const answer = await bridge.ask({ graphNow: settings.graph, ...request }, (text) => {
        state.progress = text;
        notify();
      });
      if (answer.trace) {
        tracedSettings = settingsThen;
        state.trace = { key: traceKey(settingsThen), content: answer.trace };
      }
      addData({ ...answer, listed: answer.listed && [answer.listed] });
      if (followUp) set(followUp);
    } catch (error) {
      say(error instanceof Error ? error.message : String(error));
    } finally {
      state.busy -= 1;
      state.progress = "";
      notify();
    }
  }

  function addData(
    { graph, strategies, listed: workloads = [], row_columns: rowColumns }:
    Partial<Pick<Content, "graph" | "strategies" | "listed">> & Pick<Answer, "row_columns">,
  ) {
    if (graph)
      opened.set(graph.name,
        { graph: openGraph(graph), times: graph.times, strategies: strategies! });
    for (const workload of workloads) lists.set(keyOf(workload), openListedWorkload(workload));
    if (rowColumns)
      opened.get(rowColumns.graph)?.graph.addColumns(rowColumns.row, rowColumns.columns);
  }

  function traceKey(settings: Settings) {
    const side = sideOf(settings.first, settings.parameters, settings, settings.sorted);
    return JSON.stringify([side?.key, settings.block]);
  }

  /** Show a message; a `gentle` one, a confirmation, disappears by itself. */
  function say(text: string, gentle = false) {
    clearTimeout(messageTimer);
    Object.assign(state, { message: text, gentle });
    if (gentle) messageTimer = window.setTimeout(() => say(""), CONFIRMATION_TIME);
    notify();
  }

  function notify() {
    for (const listener of listeners) listener();
  }

  function scene() {
    const { graph, strategies, times: timesTable } = current();
    const hasKernel = Boolean(bridge?.isConnected());
    const a = sideOf(settings.first, settings.parameters, settings, settings.sorted)!;
    const b = settings.second === null ? null
      : sideOf(settings.second, settings.pinned, settings, settings.pinnedSorted);
    const last = past.at(-1); // compared with if only parameters have changed since
    const isComparable = last && last.graph === settings.graph && last.first === settings.first &&
      last.nCols === settings.nCols && (last.sorted !== settings.sorted ||
        JSON.stringify(last.parameters) !== JSON.stringify(settings.parameters));
    const records = a.partition?.blocks ? a.partition.metadata(settings.block) : null;
    return {
      graph, settings, a, b, hasKernel, strategies, timesTable,
      /** The first side before the last change of a parameter. */
      before: isComparable ? sideOf(last.first, last.parameters, last, last.sorted) : null,
      metadata: records && { owner: a.owner, records },
      trace: state.trace?.key === traceKey(settings) ? state.trace.content : null,
      /** Settings at which a block was traced, and whether only row and block differ from them. */
      tracedSettings, hasTracedSetting: tracedSettings !== null &&
        state.trace?.key === traceKey({ ...settings, block: tracedSettings.block }),
      untraced: data.untraced, busy: state.busy, progress: state.progress,
      message: refused || state.message, warns: Boolean(refused) || !state.gentle,
      graphs: hasKernel ? data.graphs : [...opened.keys()], columns: data.columns,
      canUndo: past.length > 0, canRedo: future.length > 0, first: strategyOf(settings.first),
      operation: data.operation,
    };
  }

  const currentParameters = () => ({ ...sideOf(settings.first, settings.parameters)!.parameters });

  /** A change to exactly these parameters: `set` merges, so the others are set to undefined. */
  const onlyThese = (parameters: Values): Change["parameters"] => ({
    ...Object.fromEntries(Object.keys(settings.parameters).map((name) => [name, undefined])),
    ...parameters });

  return {
    scene, set, ask, say,
    trace: () => ask({ trace: { ...settings, parameters: currentParameters() } }),
    cancel: () => void (bridge?.isConnected() && bridge.tell({ cancel: true })),
    undo: () => restore(past, future),
    redo: () => restore(future, past),
    reset: () => set({ ...initial, parameters: onlyThese(initial.parameters) }),
    pin: () => set({ second: settings.first, pinned: currentParameters(),
      pinnedSorted: settings.sorted }),
    /** Show the traced block again, without changing the second side. */
    replay() {
      const { graph, first, nCols, row, block, parameters, sorted } = tracedSettings!;
      set({ graph, first, nCols, row, block, sorted, parameters: onlyThese(parameters) }, true);
    },
    swap: () => settings.second !== null && set({
      first: settings.second, parameters: { ...settings.pinned },
      second: settings.first, pinned: currentParameters(),
      sorted: settings.pinnedSorted, pinnedSorted: settings.sorted,
    }),
    addListener: (listener: () => void) => void listeners.add(listener),
    start() {
      settings = withRowAndBlock(settings, false);
      notify();
    },
  };
}

/** Row pointers of the graph with its rows in an order. */
function startsOf({ degrees }: Graph, order: Int32Array) {
  const starts = new Float64Array(order.length + 1);
  order.forEach((row, position) => (starts[position + 1] = starts[position] + degrees[row]));
  return starts;
}

const keyOf = ({ graph, strategy, nCols, parameters }:
  { graph: string; strategy: string; nCols: number; parameters: Values }) =>
  JSON.stringify([graph, strategy, nCols, Object.entries(parameters).sort()]);

/** Look up scheme and arguments in a strategy's tables; null if it refuses these values. */
function lookUpScheme(
  { scheme, parameters: declared }: Strategy, columns: number[], nCols: number, parameters: Values,
  graph: string,
) {
  const values: Values = { ...parameters, n_cols: nCols };
  const offered: Record<string, Value[]> = { n_cols: columns,
    ...Object.fromEntries(declared.map((parameter) => [parameter.name, parameter.values])) };
  const valueOf = (tree: Tree | undefined): Value =>
    typeof tree !== "object" || tree === null ? tree ?? null
      : valueOf(tree.each[offered[tree.over].indexOf(values[tree.over])]);
  const valuesOf = (trees: Record<string, Tree>) =>
    Object.fromEntries(Object.entries(trees).map(([name, tree]) => [name, valueOf(tree)]));
  const kind = valueOf(scheme?.kind) as string;
  if (!scheme || kind === "refused") return null;
  const lanes = valuesOf(scheme.lanes), workers = valuesOf(scheme.workers);
  const settings = valuesOf(scheme.arguments) as Arguments;
  return {
    scheme: kind, arguments: settings, resolved: valuesOf(scheme.resolved),
    text: valueOf(scheme.text.summary) as string | null,
    reading: lanes.lanes ? lanes as unknown as Reading : null,
    workers: workers.spacing ? workers as unknown as WorkerLanes : null,
    key: JSON.stringify([graph, kind, settings]),
  };
}

/** A sentence on what a strategy does, and the values of all its parameters. */
function describeSettings(
  strategy: Strategy, text: string, parameters: Values,
  resolved: Record<string, Value | undefined>,
) {
  const { name } = strategy, names = namesInLabel(strategy, parameters);
  const values = Object.entries(parameters)
    .map(([parameter, value]) => `${parameter} ${valueOrRule(value, resolved[parameter])}`);
  return `${name}: ${text}.${values.length ? ` Set to ${values.join(", ")}.` : ""}${names
    ? ` "${names.map((one) => parameters[one]).join(" x ")}" is ${names.join(" x ")}.` : ""}`;
}

/** The two parameters whose numbers name a setting, "12 x 32"; null if others differ, too. */
function namesInLabel(strategy: Strategy, parameters: Values) {
  const offered = strategy.parameters.filter(({ values }) => values.length > 1);
  const [first, second, ...others] = offered;
  const isNumber = (one?: typeof first) => one && typeof parameters[one.name] === "number";
  return isNumber(first) && isNumber(second) &&
    others.every(({ name, default: usual }) => parameters[name] === usual)
    ? [first.name, second.name] : null;
}

/** A short name of a side: "accel_gcn 12 x 32", or the strategy and its changed parameters. */
function labelOf(
  strategy: Strategy, parameters: Values, resolved: Record<string, Value | undefined>,
) {
  const changed = strategy.parameters.filter(({ name, values, default: usual }) =>
    values.length > 1 && parameters[name] !== usual);
  const names = namesInLabel(strategy, parameters);
  if (names) return `${strategy.name} ${names.map((name) => parameters[name]).join(" x ")}`;
  return [strategy.name, ...changed.map(({ name }) =>
    parameterText(name, parameters[name], resolved[name]))].join(" ");
}
