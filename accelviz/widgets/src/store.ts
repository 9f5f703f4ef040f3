// Settings in, a scene out. What was computed for a setting is kept for a while; undo goes back.

import { longest, openGraph } from "./graph";
import { clamp, named, ruled } from "./numbers";
import { SCHEMES } from "./schemes";
import { listed } from "./schemes/listed";
import { summaryOf } from "./summary";
import { timesOf } from "./times";
import type {
  Answer, Arguments, Bridge, Content, Graph, Reading, Request, Scene, Settings, Side, Strategy,
  Tree, Value, Values,
} from "./types";

// Sides of earlier settings that are kept, and steps that undo goes back.
const KEPT = 8, STEPS = 200;
// Changes of the same settings this soon after each other, in milliseconds, are one step of undo.
const ONE_STEP = 700;
// Milliseconds that a word of confirmation stands.
const GENTLE = 4000;

export type Store = ReturnType<typeof makeStore>;
/** Undefined for a parameter of `given` that is to be forgotten. */
export type Change = Partial<Omit<Settings,
  "given">> & { given?: Record<string, Value | undefined> };

export function makeStore(data: Content, bridge: Bridge | null = null) {
  const graphs = new Map([[data.graph.name, openGraph(data.graph)]]);
  const recorded = new Map([[data.graph.name, data.graph.times]]);
  const strategies = new Map([[data.graph.name, data.strategies]]);
  const lists = new Map((data.listed ?? []).map((raw) => [keyOf(raw), listed(raw)]));
  const sides = new Map<string, Side>(), slots = new Map<string, number | null>();
  const past: Settings[] = [], future: Settings[] = [];
  const plain = { pinned: {}, given: {}, row: 0, block: 0 };
  const begin: Settings = { ...plain, ...data.settings };
  // A notebook may have been saved between the choice of another graph and its arrival.
  if (!graphs.has(begin.graph)) begin.graph = data.graph.name;
  let settings = begin, lastChange = { keys: "", time: 0 }, refused = "", fading = 0;
  let traced = data.trace ? { ...plain, ...(data.traced ?? data.settings) } : null;
  const watchers = new Set<() => void>();
  const state = {
    busy: 0, progress: "", packed: null as Uint8Array | null, said: "", gentle: false,
    trace: traced && { key: traceKey(traced), content: data.trace! },
  };

  function graphNow() {
    return graphs.get(settings.graph)!;
  }
  function known() {
    return strategies.get(settings.graph) ?? data.strategies;
  }
  function strategyOf(name: string) {
    return known().find((strategy) => strategy.name === name)!;
  }

  /** A strategy's parameters: what was set, where it offers that, else its defaults. */
  function parametersOf(strategy: Strategy, given: Values): Values {
    return Object.fromEntries(strategy.parameters.map(({ name, values, default: usual }) =>
      [name, name in given && values.includes(given[name]) ? given[name] : usual]));
  }

  function sideOf(name: string, given: Values, { graph, nCols } = settings) {
    const strategy = strategyOf(name), parameters = parametersOf(strategy, given);
    const key = keyOf({ graph, strategy: name, nCols, given: parameters });
    const side = sides.get(key) ?? makeSide(strategy, parameters, graphs.get(graph)!, nCols, key);
    sides.delete(key);
    if (side && !side.unlisted) sides.set(key, side); // the one used last is the last to go
    while (sides.size > KEPT) sides.delete(sides.keys().next().value!);
    return side;
  }

  function partitionsOf(graph: Graph, nCols: number, strategy: Strategy, values: Values) {
    const chosen = lookUp(strategy, data.columns, nCols, values);
    return chosen && { ...chosen,
      key: JSON.stringify([graph.name, chosen.scheme, chosen.settings]) };
  }

  function makeSide(
    strategy: Strategy, parameters: Values, graph: Graph, nCols: number, key: string,
  ): Side | null {
    const list = strategy.scheme ? undefined : lists.get(key);
    const chosen = partitionsOf(graph, nCols, strategy, parameters);
    if (strategy.scheme && !chosen) return null;
    let partition = list?.partition ?? null, summary = list?.summary ?? summaryOf({});
    const partitionKey = chosen?.key ?? key;
    if (chosen) {
      const alike = [...sides.values()].find((side) => side.partitionKey === partitionKey);
      partition = alike ? alike.partition : SCHEMES[chosen.scheme](graph, chosen.settings);
      if (partition) summary = partition.summary(nCols);
    }
    const unlisted = !strategy.scheme && !list, { worker, owner, colour } = strategy;
    const resolved: Side["resolved"] = { ...list?.resolved };
    for (const name of Object.keys(parameters)) resolved[name] ??= chosen?.resolved[name];
    const reading = chosen?.reading ?? null;
    const slotsOf = (values: Values) => {
      if (!strategy.scheme) {
        const other = keyOf({ graph: graph.name, strategy: strategy.name, nCols, given: values });
        return other === key ? summary.slots : null;
      }
      const other = partitionsOf(graph, nCols, strategy, values);
      if (!other || other.key === partitionKey) return other && summary.slots;
      if (!slots.has(other.key)) {
        const counted = SCHEMES[other.scheme](graph, other.settings)?.summary(nCols);
        slots.set(other.key, counted?.slots ?? null);
      }
      return slots.get(other.key)!;
    };
    let times: Side["times"] | null = null;
    return {
      strategy: strategy.name, worker, owner, colour, parameters, resolved, partition, summary,
      unlisted, nCols, key, partitionKey, reading,
      silence: chosen?.scheme === "library" ? "A library does not say which warp does what."
        : unlisted ? "Python lists which of its warps does what; that takes a running kernel."
          : "Its warps work on tiles of the matrix together: none has nonzeros of its own.",
      label: labelOf(strategy, parameters, resolved),
      description: descriptionOf(strategy, parameters, resolved),
      order: partition?.order ?? null,
      positionOf: partition?.positionOf ?? ((row) => row),
      scheme: chosen?.scheme ?? null,
      arguments: chosen?.settings ?? null,
      bytes: parameters.storage && parameters.storage !== "float32" ? 2 : 4,
      heads: chosen?.scheme === "row_groups" ? chosen.settings.heads! : 1,
      rowPerLane: worker === "warp" && reading?.lanes === 1,
      get times() {
        return times ??= timesOf(recorded.get(graph.name), strategy, nCols, parameters, slotsOf);
      },
    };
  }

  /** Settings with the block where the row is, or the row that the block begins with. */
  function followed(wanted: Settings, byBlock: boolean): Settings {
    const graph = graphs.get(wanted.graph)!;
    const partition = sideOf(wanted.first, wanted.given, wanted)?.partition;
    const row = Math.max(0, Math.min(wanted.row, graph.rows - 1));
    if (!partition?.blocks) return { ...wanted, row, block: 0 };
    const block = clamp(wanted.block, 0, partition.blocks - 1);
    if (byBlock) {
      const position = partition.runs(block)[0]?.position;
      return { ...wanted, block, row: partition.order?.[position] ?? position ?? row };
    }
    const [low, high] = graph.rows ? partition.blocksOf(partition.positionOf(row)) : [];
    return { ...wanted, row, block: low === undefined ? block : clamp(block, low, high) };
  }

  function set(change: Change) {
    const wanted = { ...settings, ...change,
      given: { ...settings.given, ...change.given } as Values };
    if (change.graph && !graphs.has(change.graph))
      return void ask({ graph: change.graph }, change);
    if (change.graph && change.graph !== settings.graph && !("row" in change))
      wanted.row = longest(graphs.get(change.graph)!);
    const before = settings;
    settings = wanted; // `sideOf` looks at the graph that is wanted
    const able = sideOf(wanted.first, wanted.given) &&
      (wanted.second === null || sideOf(wanted.second, wanted.pinned));
    refused = able ? "" : "The strategy cannot have these values together.";
    if (!state.gentle) state.said = ""; // it was of what is left now
    if (able) settings = followed(settings, "block" in change && !("row" in change));
    if (!able || JSON.stringify(settings) === JSON.stringify(before)) { // nothing to undo
      settings = before;
      return changed();
    }
    remember(before, Object.keys(change.given ?? change).join());
    changed();
    for (const side of [scene().a, scene().b])
      if (side?.unlisted) {
        const { strategy, nCols, parameters } = side;
        ask({ listed: { strategy, nCols, given: parameters } });
      }
    bridge?.settingsChanged?.(settings);
  }

  function remember(before: Settings, keys: string) {
    const now = performance.now();
    if (keys !== lastChange.keys || now - lastChange.time > ONE_STEP || !past.length)
      past.push(before);
    if (past.length > STEPS) past.shift();
    lastChange = { keys, time: now };
    future.length = 0;
  }

  function go(from: Settings[], to: Settings[]) {
    const other = from.pop();
    if (!other) return;
    to.push(settings);
    settings = other;
    lastChange = { keys: "", time: 0 };
    changed();
    bridge?.settingsChanged?.(settings);
  }

  /** Ask Python; `then` is set when the answer has come. */
  async function ask(request: Request, then: Change | null = null) {
    if (!bridge?.alive()) return say("No kernel answers here: run the cell again to ask for that.");
    const asked = settings;
    state.busy += 1;
    changed();
    try {
      const answer = await bridge.ask({ graphNow: settings.graph, ...request }, (text) => {
        state.progress = text;
        changed();
      });
      if (answer.trace) {
        [traced, state.packed] = [asked, answer.packed ?? null];
        state.trace = { key: traceKey(asked), content: answer.trace };
      }
      learn(answer);
      if (then) set(then);
    } catch (error) {
      say(error instanceof Error ? error.message : String(error));
    } finally {
      state.busy -= 1;
      state.progress = "";
      changed();
    }
  }

  function learn(answer: Answer) {
    if (answer.graph) {
      graphs.set(answer.graph.name, openGraph(answer.graph));
      recorded.set(answer.graph.name, answer.graph.times);
      strategies.set(answer.graph.name, answer.strategies!);
    }
    if (answer.listed) lists.set(keyOf(answer.listed), listed(answer.listed));
    if (answer.some) graphs.get(answer.some.graph)?.learn(answer.some.row, answer.some.columns);
  }

  function traceKey(wanted: Settings) {
    return JSON.stringify([sideOf(wanted.first, wanted.given, wanted)?.key, wanted.block]);
  }

  /** Say something; what only confirms is `gentle`, and goes away by itself. */
  function say(text: string, gentle = false) {
    clearTimeout(fading);
    Object.assign(state, { said: text, gentle });
    if (gentle) fading = window.setTimeout(() => say(""), GENTLE);
    changed();
  }

  function changed() {
    for (const watcher of watchers) watcher();
  }

  function scene(): Scene {
    const alive = Boolean(bridge?.alive());
    const a = sideOf(settings.first, settings.given)!;
    const b = settings.second === null ? null : sideOf(settings.second, settings.pinned);
    const last = past.at(-1); // before the parameters were changed, of the same otherwise
    const sameBut = last && last.graph === settings.graph && last.first === settings.first &&
      last.nCols === settings.nCols &&
      JSON.stringify(last.given) !== JSON.stringify(settings.given);
    const records = a.partition?.blocks ? a.partition.metadata(settings.block) : null;
    return {
      graph: graphNow(), settings, a, b, alive, traced, tracePacked: state.packed,
      before: sameBut ? sideOf(last.first, last.given) : null,
      metadata: records && { owner: a.owner, records },
      trace: state.trace?.key === traceKey(settings) ? state.trace.content : null,
      untraced: data.untraced, savedGraph: data.graph.name, busy: state.busy,
      progress: state.progress, message: refused || state.said,
      warns: Boolean(refused) || !state.gentle, strategies: known(),
      graphs: alive ? data.graphs : [...graphs.keys()], columns: data.columns,
      glossary: data.glossary ?? {}, canUndo: past.length > 0, canRedo: future.length > 0,
      first: strategyOf(settings.first), operation: data.operation,
    };
  }

  const firstParameters = () => ({ ...sideOf(settings.first, settings.given)!.parameters });

  /** `given` is merged, so what is to be forgotten is named. */
  function onlyGiven(given: Values) {
    const forgotten = Object.keys(settings.given).map((name) => [name, undefined]);
    return { ...Object.fromEntries(forgotten), ...given } as Change["given"];
  }

  return {
    scene, set, ask, say,
    trace: () => ask({ trace: { ...settings, given: firstParameters() } }),
    cancel: () => void (bridge?.alive() && bridge.tell({ cancel: true })),
    undo: () => go(past, future),
    redo: () => go(future, past),
    reset: () => set({ ...begin, given: onlyGiven(begin.given) }),
    pin: () => set({ second: settings.first, pinned: firstParameters() }),
    /** Show the block that was traced; what it is compared with stays. */
    replay() {
      const { graph, first, nCols, row, block, given } = traced!;
      set({ graph, first, nCols, row, block, given: onlyGiven(given) });
    },
    swap: () => settings.second !== null && set({
      first: settings.second, given: { ...settings.pinned },
      second: settings.first, pinned: firstParameters(),
    }),
    watch: (watcher: () => void) => void watchers.add(watcher),
    start() {
      settings = followed(settings, false);
      changed();
    },
  };
}

const keyOf = ({ graph, strategy, nCols, given }:
  { graph: string; strategy: string; nCols: number; given: Values }) =>
  JSON.stringify([graph, strategy, nCols, Object.entries(given).sort()]);

/** What a strategy's partition is with these values; null where it cannot have them together. */
function lookUp(strategy: Strategy, columns: number[], nCols: number, parameters: Values) {
  const offered: Record<string, Value[]> = { n_cols: columns };
  for (const { name, values } of strategy.parameters) offered[name] = values;
  const values: Values = { ...parameters, n_cols: nCols };
  const valueOf = (tree: Tree | undefined): Value => {
    if (typeof tree !== "object" || tree === null) return tree ?? null;
    return valueOf(tree.each[offered[tree.over].indexOf(values[tree.over])]);
  };
  const { scheme } = strategy, kind = valueOf(scheme?.kind);
  if (!scheme || kind === "refused") return null;
  const valuesOf = (trees: Record<string, Tree>) =>
    Object.fromEntries(Object.entries(trees).map(([name, tree]) => [name, valueOf(tree)]));
  const lanes = valuesOf(scheme.lanes);
  return {
    scheme: kind as string, settings: valuesOf(scheme.arguments) as Arguments,
    resolved: valuesOf(scheme.resolved), reading: lanes.lanes ? lanes as unknown as Reading : null,
  };
}

/** What a strategy does, and how all of it is set. */
function descriptionOf(
  { name, summary }: Strategy, parameters: Values, resolved: Side["resolved"],
) {
  const values = Object.entries(parameters)
    .map(([parameter, value]) => `${parameter} ${ruled(value, resolved[parameter])}`);
  return `${name}: ${summary}.${values.length ? ` Set to ${values.join(", ")}.` : ""}`;
}

/** What a side is called: the strategy, and the numbers that were set. */
function labelOf(strategy: Strategy, parameters: Values, resolved: Side["resolved"]) {
  const offered = strategy.parameters.filter(({ values }) => values.length > 1);
  const changed = offered.filter((one) => parameters[one.name] !== one.default);
  const numbers = offered.slice(0, 2).map(({ name }) => parameters[name]);
  if (numbers.length === 2 && numbers.every((value) => typeof value === "number") &&
    changed.every((one) => offered.indexOf(one) < 2))
    return `${strategy.name} ${numbers.join(" x ")}`;
  return [strategy.name,
    ...changed.map(({ name }) => named(name, parameters[name], resolved[name]))]
    .join(" ");
}
