// The partition schemes, by the name that Python gives them. Each is a file of its own; of a
// partition only its `summary` takes the columns of X. Tests hold them equal to Python's.

import type { Arguments, Graph, Partition } from "../types";
import { block_level } from "./block_level";
import { lane_groups } from "./lane_groups";
import { merge_path } from "./merge_path";
import { products } from "./products";
import { row_groups } from "./row_groups";
import { rows } from "./rows";
import { runs } from "./runs";
import { vertex } from "./vertex";

export type Scheme = (graph: Graph, settings: Arguments) => Partition | null;

export const SCHEMES: Record<string, Scheme> = {
  block_level, lane_groups, merge_path, products, row_groups, rows, runs, vertex,
  library: () => null,
};
