// Lane groups: blocks of rows of one degree, in the order of the graph where that is asked for.

import { number } from "../marks";
import { ceilDiv, recordOf } from "../numbers";
import type { Arguments, Graph } from "../types";
import { type DegreeClass, factorOf, partitionOfDegrees } from "./equal_degrees";

const FIELD_LIMIT = 65535, HALF = 65536;
const NAMES = [
  "degree", "first place", "first nonzero", "nonzeros of a group | rows, or the part",
];

export function lane_groups(graph: Graph, cutting: Arguments) {
  const { warps, tiles, in_place } = cutting, most = cutting.most!;
  return partitionOfDegrees(graph, {
    warps, most, empty: true, partsFirst: true,
    pattern(degree) {
      const factor = degree > most ? factorOf(degree, warps, most) : 1;
      const alone = warps * Math.max(Math.floor(cutting.short! / Math.max(degree, 1)), 1);
      const rows = Math.min(degree > most ? warps / factor : alone, FIELD_LIMIT);
      return [rows, Math.max(ceilDiv(degree, factor), 1)];
    },
    sequence: in_place ? (classes, blocks) => inGraphOrder(graph, classes, blocks) : undefined,
    metadata({ degree, position, nz, rows, warpNzs, part }, block) {
      const words = [degree, position, nz, part ?? warpNzs * HALF + rows];
      return [recordOf(`block ${number(block)}`, NAMES, words)];
    },
    counts: ({ parts }) => ({
      global_atomics: tiles === null && parts ? null
        : parts * (tiles ?? 0) + (cutting.atomics ?? 0) * graph.nnz,
    }),
  });
}

/** Parts of long rows first, then the blocks by their first row in the graph. */
function inGraphOrder(graph: Graph, classes: DegreeClass[], blocks: number) {
  const { order } = graph.sorted();
  const beginning = new Int32Array(graph.rows).fill(-1); // block that begins with this row
  let next = 0;
  for (const { parts, blocks: many, blockRows, position, first } of classes) {
    if (parts) next += many;
    else for (let i = 0; i < many; i++) beginning[order[position + i * blockRows]] = first + i;
  }
  const described = new Int32Array(blocks), launched = new Int32Array(blocks);
  for (let block = 0; block < next; block++) described[block] = launched[block] = block;
  for (const block of beginning) {
    if (block < 0) continue;
    described[next] = block;
    launched[block] = next++;
  }
  return { described, launched };
}
