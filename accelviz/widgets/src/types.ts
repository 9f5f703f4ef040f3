// What Python sends, and what the modules hand each other.

/** A value of a strategy's parameter; null where a rule chooses. */
export type Value = number | string | boolean | null;
export type Values = Record<string, Value>;
export type Numbers = ArrayLike<number>;

/** A tree over the controls' values: a value, or a branch for each value of one control. */
export type Tree = Value | { over: string; each: Tree[] };

/** The partition scheme at all values of the controls, by name; no lanes where not known. */
export interface SchemeTables {
  kind: Tree; arguments: Record<string, Tree>; lanes: Record<string, Tree>;
  resolved: Record<string, Tree>;
}

export interface Parameter {
  name: string; meaning: string; default: Value; value: Value; values: Value[];
}

export interface Strategy {
  name: string; operation: string; formula: string; summary: string; worker: string; owner: string;
  colour: string; parameters: Parameter[]; scheme: SchemeTables | null;
}

export interface Operation {
  name: string; formula: string; title: string; by_sender: boolean; reads: string;
  at_nonzeros: boolean; beside: string | null; numbers: Record<string, "row" | "neighbor">;
  writes: string; per_nonzero: boolean; wide: boolean; arrays: Record<string, boolean>;
}

export interface RawGraph {
  name: string; rows: number; cols: number; degrees: Numbers; columns?: Uint32Array;
  some?: { row: number; columns: Numbers }[];
  times?: TimesTable;
}

export interface Graph {
  name: string; rows: number; cols: number; nnz: number; largest: number; degrees: Int32Array;
  pointers: Float64Array;
  /** Distinct degrees, ascending, and how many rows have each. */
  histogram: { degrees: number[]; rows: number[] };
  /** The order by degree: `order[position]` is a row, `position[row]` its inverse. */
  sorted(): { order: Int32Array; position: Int32Array };
  /** The columns of a row; null where they were not sent. */
  columns(row: number): Int32Array | null;
  learn(row: number, columns: Numbers): void;
}

/** Some nonzeros of one row, at a position of the order, that one worker of a block has. */
export interface Run {
  warp: number; position: number; start: number; count: number;
}

export interface Field {
  name: string; bits: number; value: number;
}

/** A record of metadata: 32-bit words with the fields in them. */
export interface MetadataRecord {
  title: string; words: number[]; fields: Field[][]; meaning: string;
}

/** How many warps have how many nonzeros; `idle` of them none. */
export interface Loads {
  nonzeros: Numbers; warps: Numbers; idle?: number;
}

/** `PartitionSummary` of Python, name by name; null, or NaN, where something is not known. */
export interface Summary {
  blocks: number | null; warps: number | null; slots: number | null; loads: Loads | null;
  metadata_bytes: number | null; rows_shared: number | null; rows_cut: number | null;
  shared_atomics: number | null; global_atomics: number | null; busy_warps: number;
  nonzeros: number; largest: number; idle_warps: number; idle_share: number; mean: number;
  imbalance: number;
}

export type Statistic = Exclude<keyof Summary, "loads">;

export interface Partition {
  blocks: number; warps: number;
  /** `order[position]` is a row; null where the rows are in the graph's order. */
  readonly order: Int32Array | null;
  positionOf(row: number): number;
  runs(block: number): Run[];
  /** Fill in the nonzeros of each warp of a block. */
  loadsOf(block: number, loads: Float64Array): Float64Array;
  /** First and last block of a position; empty where no block has it. */
  blocksOf(position: number): number[];
  metadata(block: number): MetadataRecord[] | null;
  summary(nCols: number): Summary;
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

export interface Times {
  recorded: number | null; predicted: number | null; basis: number | null; limit: number | null;
  predictedOf(parameters: Values): number | null;
  where: string; graphs: string[];
  curves: Record<string, { value: number; recorded: number }[]>;
  columns: number[];
}

/** One of the two settings that are compared, and all that follows from it. */
export interface Side {
  strategy: string; worker: string; colour: string; parameters: Values;
  /** What rules chose, where that is known. */
  resolved: Record<string, Value | undefined>;
  label: string; description: string;
  /** Why there is no partition. */
  silence: string;
  partition: Partition | null; summary: Summary;
  /** Whether only Python can list its workload, and has not yet. */
  unlisted: boolean;
  nCols: number;
  readonly order: Int32Array | null;
  positionOf(row: number): number;
  key: string; partitionKey: string; scheme: string | null; arguments: Arguments | null;
  bytes: number; reading: Reading | null;
  /** Heads of a row, of which the workload has the first. */
  heads: number;
  /** Whether each lane of a warp has a row of its own. */
  rowPerLane: boolean;
  owner: string;
  readonly times: Times;
}

export interface Settings {
  graph: string; first: string; second: string | null; nCols: number; row: number; block: number;
  given: Values; pinned: Values; view?: string;
}

export interface ListedWorkload {
  strategy: string; graph: string; nCols: number; given: Values; resolved: Values; blocks: number;
  warps: number; order: Int32Array | null; bounds?: Numbers; warp: Numbers; row: Numbers;
  start: Numbers; count: Numbers; summary: Partial<Summary>;
  metadata?: { words: Uint32Array; wide: number; names: string[] };
}

export interface Site {
  file: string; line: number; kind: "load" | "store" | "atomic"; space: string; array: string;
  bytes: number; size: number;
}

export interface Wait {
  file: string; line: number; warp: number; arrived: number; left: number;
}

export interface RawTrace {
  block: number; warps: number; sites: Site[];
  columns: Record<"site" | "warp" | "lanes" | "first" | "step" | "others", Numbers>; waits: Wait[];
  source: Record<string, string>;
}

/** The content of a page, as Python packs it. */
export interface Content {
  graph: RawGraph; graphs: string[]; columns: number[]; operation: Operation; settings: Settings;
  glossary: Record<string, string>; strategies: Strategy[]; listed?: ListedWorkload[];
  trace?: RawTrace; traced?: Settings; untraced?: string;
}

export interface Answer extends Partial<Pick<Content, "graph" | "strategies" | "trace">> {
  listed?: ListedWorkload;
  some?: { graph: string; row: number; columns: Numbers };
  /** The bytes that it came in. */
  packed?: Uint8Array;
}

export type Request = Record<string, unknown>;

/** The way to the kernel behind the page. */
export interface Bridge {
  alive(): boolean;
  ask(request: Request, progress?: (text: string) => void): Promise<Answer>;
  tell(request: Request): void;
  settingsChanged?(settings: Settings): void;
}

/** Everything that the views draw. */
export interface Scene {
  graph: Graph; settings: Settings; a: Side; b: Side | null;
  /** The first setting before the last change of a parameter. */
  before: Side | null;
  metadata: { owner: string; records: MetadataRecord[] } | null;
  trace: RawTrace | null; alive: boolean;
  /** The settings of the block that was traced. */
  traced: Settings | null;
  tracePacked: Uint8Array | null; untraced?: string;
  /** The graph that the page was saved with. */
  savedGraph: string;
  busy: number; progress: string; message: string; warns: boolean; strategies: Strategy[];
  graphs: string[]; columns: number[]; glossary: Record<string, string>; canUndo: boolean;
  canRedo: boolean; first: Strategy; operation: Operation;
}

/** What is pointed at. `keys` light other marks; the rest is for the views that know it. */
export interface Focus {
  sentence: string; keys: string[]; nonzeros?: [number, number]; columns?: number[];
  warp?: [number, number] | null; lane?: [number, number];
  read?: { column: number; from: number; to: number }[];
  y?: boolean;
}

/** A picture as SVG, and what is drawn over it for a focus. */
export interface Picture {
  svg: string;
  over(focus: Focus): string;
}
