// The warp-level partition and GNNAdvisor's neighbor groups: a run of at most `most` nonzeros of a
// row to each warp.

import type { Arguments, Graph } from "../types";
import { partitionOfWorkers, warpRecord } from "./partition";

const LEADER = 32, SHARED = 64, CUT = 128, BLOCK_SHARES = 256;

export function runs(graph: Graph, { most, warps, line_bytes }: Arguments) {
  const { degrees, pointers, rows } = graph, length = most!;
  const before = new Int32Array(rows + 1); // runs of the rows before
  for (let row = 0; row < rows; row++)
    before[row + 1] = before[row] + Math.ceil(degrees[row] / length);
  const workers = before[rows], rowOf = new Int32Array(workers);
  for (let row = 0; row < rows; row++) rowOf.fill(row, before[row], before[row + 1]);
  const startOf = (run: number) => pointers[rowOf[run]] + (run - before[rowOf[run]]) * length;
  const loadOf = (run: number) => Math.min(length, pointers[rowOf[run] + 1] - startOf(run));

  function metadata(block: number) {
    const first = block * warps, last = Math.min(first + warps, workers);
    const numbers = Array.from({ length: last - first }, (_, i) => first + i);
    if (line_bytes !== 8) {
      const names = ["row", "first nonzero", "length", "padding"];
      return numbers.map((run) =>
        warpRecord(run, names, [rowOf[run], startOf(run), loadOf(run), 0]));
    }
    // GNNAdvisor's Algorithm 2: a warp's row, and its slot of shared memory with flags.
    const inBlock = (run: number) => run >= first && run < last;
    const shares = (run: number) => [run - 1, run + 1].some((other) =>
      inBlock(other) && rowOf[other] === rowOf[run]);
    const blockShares = numbers.some(shares);
    let slot = -1;
    return numbers.map((run) => {
      const row = rowOf[run], leads = run === first || rowOf[run - 1] !== row;
      if (leads) slot += 1;
      const isCut = Math.floor(before[row] / warps) !== Math.floor((before[row + 1] - 1) / warps);
      const word = slot | (leads ? LEADER : 0) | (shares(run) ? SHARED : 0) | (isCut ? CUT : 0) |
        (blockShares ? BLOCK_SHARES : 0);
      return warpRecord(run, ["row", "slot and flags"], [row, word]);
    });
  }

  return partitionOfWorkers(graph, {
    warps, workers, loadOf, metadata,
    workersOf: (row) => degrees[row] ? [before[row], before[row + 1] - 1] : null,
    runsOf: (run) => [{ position: rowOf[run], start: startOf(run), count: loadOf(run) }],
    counts: (nCols, { additions, pieces }) => ({
      metadata_bytes: line_bytes! * workers,
      shared_atomics: additions * nCols, global_atomics: pieces * nCols,
    }),
  });
}
