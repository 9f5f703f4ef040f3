// What Python sends, and what is pointed at.

export type { Graph } from "./graph";
export type { Field, MetadataRecord } from "./numbers";
export type { Partition, Run, Statistic } from "./schemes/partition";
export type { Scene, Side } from "./store";

/** A value of a strategy's parameter; null where a rule chooses. */
export type Value = number | string | boolean | null;
export type Values = Record<string, Value>;
export type Numbers = ArrayLike<number>;

/** A tree over the controls' values: a value, or a branch for each value of one control. */
export type Tree = Value | { over: string; each: Tree[] };

/** The partition scheme at all values of the controls, by name; no lanes where not known. */
interface SchemeTables {
  kind: Tree; arguments: Record<string, Tree>; lanes: Record<string, Tree>;
  resolved: Record<string, Tree>;
}

export interface Parameter {
  name: string; meaning: string; default: Value; value: Value; values: Value[];
}

export interface Strategy {
  name: string; summary: string; worker: string; owner: string; parameters: Parameter[];
  scheme: SchemeTables | null;
}

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
  row_columns?: RowColumns[];
  times?: TimesTable;
}

/** The arguments of a scheme, as Python names them. */
export type Arguments = Record<string, number | null> & { warps: number };

/** What the lanes of a worker read: columns a load, lanes, columns a tile. */
export interface Reading {
  lanes: number; vector: number; tile: number;
}

export interface TimesTable {
  where: string; graphs: string[]; strategy: string[]; columns: number[];
  setting: Record<string, string>[]; median: Numbers; limit: Numbers;
}

export interface Settings {
  graph: string; first: string; second: string | null; nCols: number; row: number; block: number;
  parameters: Values; pinned: Values;
}

export interface ListedWorkload {
  strategy: string; graph: string; nCols: number; parameters: Values; resolved: Values;
  blocks: number; warps: number; order: Int32Array | null; bounds?: Numbers; warp: Numbers;
  row: Numbers; start: Numbers; count: Numbers; summary?: Record<string, never>;
  metadata?: { words: Uint32Array; wide: number; names: string[] };
}

export interface Site {
  file: string; line: number; kind: "load" | "store" | "atomic"; space: string; array: string;
  bytes: number; size: number;
}

interface Wait {
  file: string; line: number; warp: number; arrived: number; left: number;
}

export interface RawTrace {
  block: number; warps: number; sites: Site[];
  columns: Record<"site" | "warp" | "lanes" | "begins" | "offsets", Uint32Array>; waits: Wait[];
  source: Record<string, string>;
}

/** The content of a page, as Python packs it. */
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

/** The way to the kernel behind the page. */
export interface Bridge {
  alive(): boolean;
  ask(request: Request, progress?: (text: string) => void): Promise<Answer>;
  tell(request: Request): void;
  settingsChanged?(settings: Settings): void;
}

/** What is pointed at; all but the sentence is for the views that know it. */
export interface Focus {
  sentence: string; nonzeros?: [number, number]; columns?: number[];
  warp?: [number, number] | null; lane?: [number, number];
  read?: { column: number; from: number; to: number }[];
  y?: boolean;
}

/** A picture as SVG, and what is drawn over it for a focus. */
export interface Picture {
  svg: string;
  over?(focus: Focus): string;
}
