// Accel-GCN's block-level partition (Algorithms 1 and 2): rows of one degree, an int4 a block.

import { count, number } from "../marks";
import { ceilDiv } from "../numbers";
import type { Arguments, Graph } from "../types";
import { type BlockFields, factorOf, partitionOfDegrees, sharesOfRow } from "./equal_degrees";

const HALF = 65536;

export function block_level(graph: Graph, { warps, most }: Arguments) {
  return partitionOfDegrees(graph, {
    warps, most: most!, empty: false, partsFirst: false,
    pattern(degree) {
      const factor = factorOf(degree, warps, most!);
      return [warps / factor, ceilDiv(degree, factor)];
    },
    metadata: (fields, block, bound) => [int4Record(fields, block, bound)],
    counts: ({ nCols, sums, parts }) =>
      ({ shared_atomics: sums * nCols, global_atomics: parts * nCols }),
  });
}

// The int4 of a block, its bits and what they say (section III-C).
function int4Record(fields: BlockFields, block: number, bound: number) {
  const { degree, position, nz, rows, warpNzs, rowNzs } = fields;
  const isCut = degree > bound, warpsOfRow = sharesOfRow(fields);
  const word = (name: string, value: number, bits = 32) => ({ name, bits, value });
  const which = rows > 1 ? `each of the ${rows} rows from place ${number(position)} on`
    : `the row in place ${number(position)}`;
  const share = warpsOfRow === 1 ? "one warp a row" : `${warpsOfRow} warps share a row`;
  return {
    title: `block ${number(block)}`,
    words: [degree, position, nz, isCut ? rowNzs : warpNzs * HALF + rows],
    fields: [
      [word("degree", degree)], [word("first place", position)],
      [word("first nonzero (loc)", nz)],
      isCut ? [word("info: nonzeros of this part", rowNzs)]
        : [word("info: nonzeros of a warp", warpNzs, 16), word("info: rows", rows, 16)],
    ],
    meaning: isCut
      ? `degree ${number(degree)}, more than the ${number(bound)} that a block takes: this one ` +
      `takes ${count(rowNzs, "nonzero")} of the row in place ${number(position)}, the first at ` +
      `position ${number(nz)}, at most ${number(warpNzs)} a warp`
      : `degree ${number(degree)}: ${which} has ${count(degree, "nonzero")}, the first at ` +
        `position ${number(nz)}; ${share}, at most ${count(warpNzs, "nonzero")} each`,
  };
}
