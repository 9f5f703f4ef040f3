// From a strategy and its setting to a partition. Every scheme has a function of its own, named as
// Python names it (`accelviz.partition.cut`); tests hold them equal. Of a partition only its
// `summary` takes the columns of X: they change how many atomics there are, and not who does what.

import { block_level, lane_groups } from "./blocks";
import { row_groups } from "./row_groups";
import { merge_path, products, rows, runs, vertex } from "./runs";
import { fieldsNamed } from "./numbers";
import { summaryOf } from "./summary";

const library = () => null;

export const CUTS = { block_level, lane_groups, runs, rows, row_groups, merge_path, products, vertex, library };

// Looks an argument up: a tree branches over the names that the argument depends on.
function lookUp(tree, values, setting) {
  while (tree !== null && typeof tree === "object")
    tree = tree.each[values[tree.over].indexOf(setting[tree.over])];
  return tree;
}

// The arguments of a strategy's cut, or null where it cannot have these values together.
export function cutOf(strategy, columns, nCols, parameters) {
  const values = { n_cols: columns };
  for (const each of strategy.parameters) values[each.name] = each.values;
  const setting = { n_cols: nCols, ...parameters };
  const found = {};
  for (const [argument, tree] of Object.entries(strategy.cut))
    found[argument] = lookUp(tree, values, setting);
  return found.kind === "refused" || found.kind === undefined ? null : found;
}

// A workload that Python listed record by record, of a strategy that names no scheme.
export function listed(raw) {
  if (!raw.bounds) return { partition: null, summary: summaryOf({}), settled: raw.settled };
  const { bounds, warp, row, start, count, warps, blocks, order } = raw;
  let inverse = null;
  const placeOf = (wanted) => {
    if (!order) return wanted;
    if (!inverse) {
      inverse = new Int32Array(order.length);
      order.forEach((each, place) => (inverse[each] = place));
    }
    return inverse[wanted];
  };
  const runsOf = (block) => {
    const found = [];
    for (let i = bounds[block]; i < bounds[block + 1]; i++)
      found.push({ warp: warp[i], place: row[i], start: start[i], count: count[i] });
    return found;
  };
  const summary = summaryOf(raw.summary);
  const partition = {
    blocks, warps, order: order ? Int32Array.from(order) : null, placeOf, runs: runsOf,
    loadsOf(block, out) {
      out.fill(0);
      for (let i = bounds[block]; i < bounds[block + 1]; i++) out[warp[i]] += count[i];
      return out;
    },
    blocksOf(place) {
      let first = -1, last = -1;
      for (let block = 0; block < blocks; block++) {
        for (let i = bounds[block]; i < bounds[block + 1]; i++) {
          if (row[i] !== place) continue;
          if (first < 0) first = block;
          last = block;
        }
      }
      return first < 0 ? [] : [first, last];
    },
    metadata: (block) => raw.metadata ? listedLines(raw, block) : null,
  };
  return { partition, summary, settled: raw.settled };
}

function listedLines({ metadata, blocks, warps, bounds }, block) {
  const { words, wide, names } = metadata, lines = words.length / wide;
  const each = lines === blocks ? 1 : warps;
  const found = [];
  for (let line = block * each; line < Math.min((block + 1) * each, lines); line++) {
    const own = [...words.slice(line * wide, (line + 1) * wide)];
    const fields = own.map((word, i) => names[i] ? fieldsNamed(names[i], word) : []);
    const title = `${each === 1 ? "block" : "warp"} ${line.toLocaleString("en")}`;
    found.push({ title, words: own.map((word) => word >>> 0), fields, meaning: "" });
  }
  return found;
}
