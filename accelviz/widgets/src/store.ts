// Settings in, a scene out. What was computed for a setting is kept for a while; undo goes back.

import { CUTS, cutOf, listed } from "./cuts";
import { openGraph } from "./graph";
import { named, ruled } from "./numbers";
import { summaryOf } from "./summary";
import { timesOf } from "./times";

// Sides of earlier settings that are kept, and steps that undo goes back.
const KEPT = 8, STEPS = 200;
// Changes of the same settings this soon after each other, in milliseconds, are one step of undo.
const ONE_STEP = 700;
// Milliseconds that a word of confirmation stands.
const GENTLE = 4000;

export function makeStore(data, bridge = null) {
  const graphs = new Map([[data.graph.name, openGraph(data.graph)]]);
  const recorded = new Map([[data.graph.name, data.graph.times]]);
  const strategies = new Map([[data.graph.name, data.strategies]]);
  const lists = new Map((data.listed ?? []).map((each) => [listKey(each), listed(each)]));
  const sides = new Map(), slots = new Map(); // of settings: sides; of partitions: warp time
  const past = [], future = [];
  const plain = { pinned: {}, given: {}, row: 0, block: 0 };
  const begin = { ...plain, ...data.settings };
  let traced = data.trace ? { ...plain, ...(data.traced ?? data.settings) } : null;
  // A notebook may have been saved between the choice of another graph and its arrival.
  if (!graphs.has(begin.graph)) begin.graph = data.graph.name;
  let settings = begin, lastChange = { keys: "", time: 0 }, refused = "";
  const watchers = new Set();

  const graphNow = () => graphs.get(settings.graph);
  const known = () => strategies.get(settings.graph) ?? data.strategies;
  const strategyOf = (name) => known().find((each) => each.name === name);

  // A strategy's own parameters: what was set, where it offers that, else its defaults.
  function parametersOf(strategy, given) {
    const own = strategy.parameters.map((each) => {
      const set = each.name in given && each.values.includes(given[each.name]);
      return [each.name, set ? given[each.name] : each.default];
    });
    return Object.fromEntries(own);
  }

  function sideOf(name, given, graph = graphNow(), nCols = settings.nCols) {
    const strategy = strategyOf(name), parameters = parametersOf(strategy, given);
    const key = listKey({ graph: graph.name, strategy: name, nCols, given: parameters });
    let side = sides.get(key);
    if (!side) side = makeSide(strategy, parameters, graph, nCols, key);
    sides.delete(key);
    if (side && !side.waiting) sides.set(key, side); // the one used last is the last to go
    while (sides.size > KEPT) sides.delete(sides.keys().next().value);
    return side;
  }

  function makeSide(strategy, parameters, graph, nCols, key) {
    let partition = null, summary = null, waiting = false, reading = null, cut = null;
    let dealtKey = key;
    if (strategy.cut) {
      cut = cutOf(strategy, data.columns, nCols, parameters);
      if (!cut) return null;
      dealtKey = dealtKeyOf(graph, cut);
      const alike = [...sides.values()].find((each) => each.dealtKey === dealtKey);
      partition = alike ? alike.partition : CUTS[cut.kind](graph, cut);
      if (cut["reading lanes"]) {
        reading = { lanes: cut["reading lanes"], vector: cut["reading vector"],
          tile: cut["reading tile"] };
      }
      summary = partition ? partition.summary(nCols) : summaryOf({});
    } else if (lists.has(key)) {
      ({ partition, summary } = lists.get(key));
    } else {
      waiting = true;
      summary = summaryOf({});
    }
    // What rules chose, where that is known without a plan or one was made.
    const { settled = {} } = lists.get(key) ?? {};
    for (const name of Object.keys(parameters)) settled[name] ??= cut?.[`settled ${name}`] ?? undefined;
    const side = {
      dealtKey, settled,
      silent: cut?.kind === "library" ? "A library does not say which warp does what."
        : waiting ? "Python lists which of its warps does what; that takes a running kernel."
        : "Its warps work on tiles of the matrix together: none has nonzeros of its own.",
      strategy: strategy.name, worker: strategy.worker, colour: strategy.colour, parameters,
      label: labelOf(strategy, parameters, settled), said: saidOf(strategy, parameters, settled), partition, summary, waiting, nCols,
      order: null, placeOf: partition?.placeOf ?? ((row) => row), key, cut,
      bytes: parameters.storage && parameters.storage !== "float32" ? 2 : 4, reading,
      heads: cut?.kind === "row_groups" ? cut.heads : 1, // of which the workload has the first
      apart: strategy.worker === "warp" && reading?.lanes === 1, // each lane of a warp has a row
    };
    if (partition) Object.defineProperty(side, "order", { get: () => partition.order });
    let times = null;
    const slotsOf = (other) => {
      if (!cut) {
        const own = listKey({ graph: graph.name, strategy: strategy.name, nCols, given: other });
        return own === key ? summary.slots : null;
      }
      const scheme = cutOf(strategy, data.columns, nCols, other);
      const own = scheme && dealtKeyOf(graph, scheme);
      if (own === dealtKey) return summary.slots;
      if (!slots.has(own)) {
        const made = scheme && CUTS[scheme.kind](graph, scheme);
        slots.set(own, made?.summary(nCols).slots ?? null);
      }
      return slots.get(own);
    };
    Object.defineProperty(side, "times", {
      get: () => (times ??= timesOf(recorded.get(graph.name), strategy, nCols, parameters,
        slotsOf)),
    });
    side.metadataOf = (block) => {
      const lines = partition?.blocks ? partition.metadata?.(block) : null;
      return lines ? { owner: strategy.owner, lines } : null;
    };
    return side;
  }

  // Where the row is now, or which row the block begins with.
  function followed(wanted, byBlock) {
    const graph = graphs.get(wanted.graph);
    const side = sideOf(wanted.first, wanted.given, graph, wanted.nCols);
    const { partition } = side ?? {};
    const row = Math.max(0, Math.min(wanted.row, graph.rows - 1));
    if (!partition?.blocks) return { ...wanted, row, block: 0 };
    const block = Math.max(0, Math.min(wanted.block, partition.blocks - 1));
    if (byBlock) {
      const first = partition.runs(block)[0];
      const order = partition.order;
      return { ...wanted, block, row: first ? (order ? order[first.place] : first.place) : row };
    }
    const [low, high] = graph.rows ? partition.blocksOf(partition.placeOf(row)) : [];
    if (low === undefined) return { ...wanted, row, block };
    return { ...wanted, row, block: Math.max(low, Math.min(block, high)) };
  }

  function set(change, { remember = true } = {}) {
    let wanted = { ...settings, ...change };
    if (change.given) wanted.given = { ...settings.given, ...change.given };
    if (change.graph && !graphs.has(change.graph)) return ask({ graph: change.graph }, change);
    if (change.graph && change.graph !== settings.graph && !("row" in change))
      wanted.row = longest(graphs.get(change.graph));
    const before = settings;
    settings = wanted; // `sideOf` looks at the graph that is wanted
    const able = [[wanted.first, wanted.given], [wanted.second, wanted.pinned]]
      .every(([name, given]) => name === null || sideOf(name, given) !== null);
    refused = able ? "" : "The strategy cannot have these values together.";
    if (!state.gentle) state.said = ""; // it was of what is left now
    if (!able) {
      settings = before;
      return changed();
    }
    settings = followed(wanted, "block" in change && !("row" in change));
    if (JSON.stringify(settings) === JSON.stringify(before)) { // nothing for undo to take back
      settings = before;
      return changed();
    }
    if (remember) keep(before, Object.keys(change.given ?? change).join());
    changed();
    for (const side of [scene().a, scene().b]) if (side?.waiting) ask({ listed: request(side) });
    bridge?.settled?.(settings);
  }

  const request = (side) =>
    ({ strategy: side.strategy, nCols: side.nCols, given: side.parameters });

  function keep(before, keys) {
    const now = performance.now();
    if (keys !== lastChange.keys || now - lastChange.time > ONE_STEP || !past.length)
      past.push(before);
    if (past.length > STEPS) past.shift();
    lastChange = { keys, time: now };
    future.length = 0;
  }

  function go(from, to) {
    if (!from.length) return;
    to.push(settings);
    settings = from.pop();
    lastChange = { keys: "", time: 0 };
    changed();
    bridge?.settled?.(settings);
  }

  // What only Python can answer; `then` is set when the answer has come.
  async function ask(question, then = null) {
    if (!bridge?.alive()) {
      say("No kernel answers here: run the cell again to ask for that.");
      return null;
    }
    if (question.trace) {
      const given = sideOf(settings.first, settings.given).parameters;
      question = { trace: { ...settings, given } };
    }
    const of = question.trace ? traceKey() : null;
    state.busy += 1;
    changed();
    try {
      const answer = await bridge.ask({ graphNow: settings.graph, ...question }, (text) => {
        state.progress = text;
        changed();
      });
      if (answer.trace) [traced, state.packed] = [question.trace, answer.packed];
      learn(answer, of);
      if (then) set(then);
      return answer;
    } catch (error) {
      say(String(error.message ?? error));
      return null;
    } finally {
      state.busy -= 1;
      state.progress = "";
      changed();
    }
  }

  function learn(answer, of = null) {
    if (answer.graph) {
      graphs.set(answer.graph.name, openGraph(answer.graph));
      recorded.set(answer.graph.name, answer.graph.times);
      strategies.set(answer.graph.name, answer.strategies);
    }
    if (answer.listed) lists.set(listKey(answer.listed), listed(answer.listed));
    if (answer.some) graphs.get(answer.some.graph)?.learn(answer.some.row, answer.some.columns);
    if (answer.trace) state.trace = { key: of ?? traceKey(), ...answer.trace };
  }

  const traceKey = ({ first, given, graph, nCols, block } = settings) =>
    JSON.stringify([sideOf(first, given, graphs.get(graph), nCols)?.key, block]);
  const state = { busy: 0, progress: "", trace: null, packed: null, said: "", gentle: false };
  if (traced) state.trace = { key: traceKey(traced), ...data.trace };
  let fading = 0;
  // What only confirms something is `gentle`, and goes away by itself.
  function say(text, gentle = false) {
    clearTimeout(fading);
    Object.assign(state, { said: text, gentle });
    if (gentle) fading = setTimeout(() => say(""), GENTLE);
    changed();
  }
  const changed = () => watchers.forEach((each) => each());

  function scene() {
    const a = sideOf(settings.first, settings.given);
    const b = settings.second === null ? null : sideOf(settings.second, settings.pinned);
    for (const side of [a, b])
      if (side) side.metadata = side === a ? side.metadataOf(settings.block) : null;
    const last = past.at(-1); // before the parameters were changed, of the same otherwise
    const alike = last && ["graph", "first", "nCols"].every((name) => last[name] === settings[name]) &&
      JSON.stringify(last.given) !== JSON.stringify(settings.given);
    const before = alike ? sideOf(last.first, last.given) : null;
    const trace = state.trace?.key === traceKey() ? state.trace : null;
    return {
      graph: graphNow(), settings, a, b, before, trace, alive: Boolean(bridge?.alive()),
      traced, tracePacked: state.packed, untraced: data.untraced, packed: data.graph.name,
      busy: state.busy, progress: state.progress, message: refused || state.said,
      warns: Boolean(refused) || !state.gentle, strategies: known(),
      graphs: bridge?.alive() ? data.graphs : [...graphs.keys()], columns: data.columns,
      glossary: data.glossary ?? {}, canUndo: past.length > 0, canRedo: future.length > 0,
      first: strategyOf(settings.first), operation: data.operation,
    };
  }

  return {
    scene, set, ask, learn, say,
    trace: () => ask({ trace: true }),
    cancel: () => bridge?.alive() && bridge.tell({ cancel: true }),
    undo: () => go(past, future),
    redo: () => go(future, past),
    reset: () => set({ ...begin, given: resetGiven(begin.given) }),
    pin: () => set({ second: settings.first,
      pinned: { ...sideOf(settings.first, settings.given).parameters } }),
    replay: () => {
      const { second, pinned, view, given, ...rest } = traced; // what it is compared with stays
      set({ ...rest, given: resetGiven(given) });
    },
    swap: () => settings.second !== null && set({
      first: settings.second, given: { ...settings.pinned },
      second: settings.first, pinned: { ...sideOf(settings.first, settings.given).parameters } }),
    watch: (then) => (watchers.add(then), () => watchers.delete(then)),
    start: () => ((settings = followed(settings, false)), changed()),
  };

  // `given` is merged, so what is to be forgotten has to be named.
  function resetGiven(given) {
    const forgotten = Object.keys(settings.given).map((name) => [name, undefined]);
    return { ...Object.fromEntries(forgotten), ...given };
  }
}

export const longest = (graph) => graph.degrees.indexOf(graph.largest);

// What the columns of X do not change: who has which nonzeros.
const dealtKeyOf = (graph, cut) =>
  JSON.stringify([graph.name, Object.entries(cut).filter(([name]) => !/^(reading|settled) /.test(name))]);

const listKey = ({ graph, strategy, nCols, given }) =>
  JSON.stringify([graph, strategy, nCols, Object.entries(given).sort()]);

// What a strategy does, and how all of it is set.
function saidOf({ name, summary }, parameters, settled) {
  const own = Object.entries(parameters).map(([each, value]) => `${each} ${ruled(value, settled[each])}`);
  return `${name}: ${summary}.${own.length ? ` Set to ${own.join(", ")}.` : ""}`;
}

// What a side is called: the strategy, and the numbers that were set.
function labelOf(strategy, parameters, settled) {
  const own = strategy.parameters.filter((each) => each.values.length > 1);
  const told = own.filter((each) => parameters[each.name] !== each.default);
  const words = told.map((each) => named(each.name, parameters[each.name], settled[each.name]));
  const numbers = own.slice(0, 2).map((each) => parameters[each.name]);
  if (own.length >= 2 && numbers.every((each) => typeof each === "number") &&
      told.every((each) => own.indexOf(each) < 2))
    return `${strategy.name} ${numbers.join(" x ")}`;
  return [strategy.name, ...words].join(" ");
}
