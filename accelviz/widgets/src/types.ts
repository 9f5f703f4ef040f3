// Types of the data that Python packs (`contents.py`, `traced.py`), and types that views share.

import type { WorkerLanes } from "./hardware";

export type { Graph } from "./graph";
export type { Hardware } from "./hardware";
export type { Field, MetadataRecord } from "./numbers";
export type { Partition, Run, Statistic } from "./schemes/partition";
export type { Scene, Side } from "./store";

/** A value of a strategy's parameter; null if a rule chooses it. */
export type Value = number | string | boolean | null;
export type Values = Record<string, Value>;
export type Numbers = ArrayLike<number>;

/** A decision tree over the controls: a value, or a subtree for each value of one control. */
export type Tree = Value | { over: string; each: Tree[] };

/** A strategy's partition scheme for all values of its controls; see `offers.scheme_tables`. */
interface SchemeTables {
  kind: Tree; arguments: Record<string, Tree>; lanes: Record<string, Tree>;
  workers: Record<string, Tree>; text: Record<string, Tree>; resolved: Record<string, Tree>;
}

export interface Parameter {
  name: string; meaning: string; default: Value; value: Value; values: Value[];
}

export interface Strategy {
  name: string; summary: string; worker: string; owner: string; parameters: Parameter[];
  scheme: SchemeTables | null;
}

/** Names and roles of an operation's operands; see `operation_content` in contents.py. */
export interface Operation {
  name: string; formula: string; title: string; by_sender: boolean; reads: string;
  at_nonzeros: boolean; beside: string | null; numbers: Record<string, "row" | "neighbor">;
  writes: string; per_nonzero: boolean; wide: boolean; arrays: Record<string, boolean>;
}

interface RowColumns {
  row: number; columns: Numbers;
}

export interface RawGraph {
  name: string; rows: number; cols: number; degrees: Numbers; columns?: Uint32Array;
  row_columns?: RowColumns[]; density?: Uint8Array;
  times?: TimesTable;
}

/** Arguments of a partition scheme, with Python's names. */
export type Arguments = Record<string, number | null> & { warps: number };

/** How a worker reads a row: its lanes, columns per load (`vector`) and per column tile. */
export interface Reading {
  lanes: number; vector: number; tile: number;
}

export interface TimesTable {
  where: string; graphs: string[]; strategy: string[]; columns: number[];
  setting: Record<string, string>[]; median: Numbers; low: Numbers; high: Numbers; limit: Numbers;
  /** Index of each time's run in `runs`. */
  run: number[]; runs: { where: string; launch: number }[];
}

export interface Settings {
  graph: string; first: string; second: string | null; nCols: number; row: number; block: number;
  parameters: Values; pinned: Values;
  /** Whether the first and the second strategy walk the rows in ascending order of degree. */
  sorted?: boolean; pinnedSorted?: boolean;
}

export interface ListedWorkload {
  strategy: string; graph: string; nCols: number; parameters: Values; resolved: Values;
  blocks: number; warps: number; order: Int32Array | null; bounds?: Numbers; warp: Numbers;
  row: Numbers; start: Numbers; count: Numbers; summary?: Record<string, never>;
  workers: WorkerLanes | null; columns: Reading | null;
  metadata?: { words: Uint32Array; wide: number; names: string[] };
}

/** What an array holds; see `array_role` in traced.py. */
export type Role = "structure" | "nonzeros" | "input" | "output";

export interface Site {
  file: string; line: number; kind: "load" | "store" | "atomic"; space: string; array: string;
  bytes: number; size: number; role: Role;
}

interface Wait {
  file: string; line: number; warp: number; arrived: number; left: number;
}

export interface RawTrace {
  block: number; warps: number; sites: Site[];
  columns: Record<"site" | "warp" | "lanes" | "begins" | "offsets", Uint32Array>; waits: Wait[];
  source: Record<string, string>;
}

/** The data of a page, which `Explorer.content` packs. */
export interface Content {
  graph: RawGraph; graphs: string[]; columns: number[]; operation: Operation; settings: Settings;
  glossary: Record<string, string>; strategies: Strategy[]; listed?: ListedWorkload[];
  trace?: RawTrace; untraced?: string;
}

export interface Answer extends Partial<Pick<Content, "graph" | "strategies" | "trace">> {
  listed?: ListedWorkload;
  row_columns?: RowColumns & { graph: string };
}

export type Request = Record<string, unknown>;

/** The connection to the notebook kernel. */
export interface Bridge {
  isConnected(): boolean;
  ask(request: Request, progress?: (text: string) => void): Promise<Answer>;
  tell(request: Request): void;
  settingsChanged?(settings: Settings): void;
}

/** The thing pointed at: a sentence about it, and the parts that views highlight. */
export interface Focus {
  sentence: string; nonzeros?: [number, number]; columns?: number[];
  warps?: { block: number; numbers: number[] }; lane?: [number, number];
  read?: { column: number; from: number; to: number }[];
  y?: boolean;
}

/** A picture as SVG text; `over` returns the SVG drawn over it to highlight a focus. */
export interface Picture {
  svg: string;
  over?(focus: Focus): string;
}
