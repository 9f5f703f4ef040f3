// Kernel times of a setting that were recorded on a GPU. Nothing is computed for settings between
// recorded ones.

import { micros, parameterText } from "./numbers";
import type { Strategy, TimesTable, Value, Values } from "./types";

/** A value other than text as a Python literal. */
export const pythonValue = (value: Value) => value === null ? "None" : typeof value === "boolean"
  ? (value ? "True" : "False") : String(value);

/** A recorded time in microseconds with its quartiles, and the run that it belongs to. */
export interface Recorded {
  median: number; low: number; high: number; run: number;
}

export interface SettingTime extends Recorded {
  strategy: string; parameters: Values; label: string;
}

/** All settings of a strategy that a run has recorded; of equal settings the first in the table. */
export function allRecorded(
  table: TimesTable | undefined, strategy: Strategy, nCols: number, run: number,
): SettingTime[] {
  const times = new Map<string, SettingTime>();
  const rows = table?.strategy.flatMap((name, i) =>
    name === strategy.name && table.columns[i] === nCols && table.run[i] === run ? [i] : []) ?? [];
  const isVaried = (key: string) => new Set(rows.map((i) => table!.setting[i][key])).size > 1;
  for (const i of rows) {
    const texts = table!.setting[i];
    // Only settings that the controls can show.
    const parameters: Values = {};
    let isOffered = true;
    for (const { name: key, values, default: usual } of strategy.parameters) {
      const value = values.find((offered) => pythonValue(offered) === texts[key] ||
        offered === texts[key]);
      // Where the default is None, a rule chose the only value that was recorded.
      const isRule = usual === null && !isVaried(key);
      parameters[key] = isRule || value === undefined ? usual : value;
      isOffered &&= isRule || value !== undefined || !(key in texts);
    }
    if (!isOffered) continue;
    const changed = strategy.parameters.filter((parameter) =>
      parameters[parameter.name] !== parameter.default);
    const label = [strategy.name, ...changed.map((parameter) =>
      parameterText(parameter.name, parameters[parameter.name]))].join(" ");
    if (!times.has(label))
      times.set(label, { strategy: strategy.name, parameters, label, median: table!.median[i],
        low: table!.low[i], high: table!.high[i], run: table!.run[i] });
  }
  return [...times.values()];
}

/** Runs that have times of some strategies, those with most strategies first. */
export function runsOf(table: TimesTable | undefined, names: string[], nCols: number) {
  const strategies = new Map<number, Set<string>>();
  table?.strategy.forEach((name, i) => {
    if (table.columns[i] !== nCols || !names.includes(name)) return;
    const run = table.run[i];
    strategies.set(run, (strategies.get(run) ?? new Set()).add(name));
  });
  return [...strategies].sort(([, a], [, b]) => b.size - a.size).map(([run]) => run);
}

/** Whether two recorded times are not apart: the ranges of the middle half of the repeats meet. */
export const quartilesOverlap = (a: Recorded, b: Recorded) => a.low <= b.high && b.low <= a.high;

/** "6.4 to 6.6 µs", the middle half of the repeats. */
export const spreadText = ({ low, high }: Pick<Recorded, "low" | "high">) =>
  `${micros(low).replace(" µs", "")} to ${micros(high)}`;

/** Recorded times of two settings in one run; null if no run has both. */
export function timesOfOneRun(a: { records: Recorded[] }, b: { records: Recorded[] }) {
  for (const first of a.records) {
    const second = b.records.find(({ run }) => run === first.run);
    if (second) return [first, second];
  }
  return null;
}

/** Times to show for two settings, or for one: of one run that has both, else each one's own. */
export function timesBeside(a: Timed, b: Timed | null): (Recorded | null)[] {
  return b ? timesOfOneRun(a.times, b.times) ?? [a.times.recorded, b.times.recorded]
    : [a.times.recorded];
}

interface Timed {
  times: { records: Recorded[]; recorded: Recorded | null };
}

/** Look up recorded times. Of equal settings the first in the table counts. */
export function timesOf(
  table: TimesTable | undefined, strategy: Strategy, nCols: number, parameters: Values,
) {
  const { where = "", graphs = [] } = table ?? {};
  const columns = [...new Set(table?.columns)].sort((a, b) => a - b);
  const ofStrategy = table?.strategy.flatMap((name, i) => name === strategy.name ? [i] : []) ?? [];
  const rows = ofStrategy.filter((i) => table!.columns[i] === nCols);
  const matches = (values: Values, of = rows) => of.filter((i) => Object.entries(values).every(
    ([name, value]) => value === null || table!.setting[i][name] === pythonValue(value)));
  const recordOf = (row: number): Recorded => ({
    median: table!.median[row], low: table!.low[row], high: table!.high[row], run: table!.run[row],
  });
  const exactRows = matches(parameters), [exact] = exactRows;
  const run = exact === undefined ? undefined : table!.run[exact];

  /** Recorded times over a parameter's values, all of one run: that of the setting's own time, or
   *  else the one with most values. */
  function curveOf({ name, values }: Strategy["parameters"][number]) {
    const points = values.flatMap((value) => typeof value !== "number" ? []
      : matches({ ...parameters, [name]: value }).flatMap((row) =>
          name in table!.setting[row] ? [{ value, ...recordOf(row) }] : []));
    const sizes = new Map<number, number>();
    for (const point of points) sizes.set(point.run, (sizes.get(point.run) ?? 0) + 1);
    const [best] = [...sizes].sort(([a, m], [b, n]) =>
      Number(b === run) - Number(a === run) || n - m)[0] ?? [];
    return points.filter((point) => point.run === best);
  }

  const curves: Record<string, ReturnType<typeof curveOf>> = {};
  for (const parameter of strategy.parameters) {
    const curve = curveOf(parameter);
    if (curve.length >= 3) curves[parameter.name] = curve;
  }
  return {
    where, graphs, curves,
    /** Column counts that were recorded of the strategy. */
    columns: columns.filter((wanted) => ofStrategy.some((i) => table!.columns[i] === wanted)),
    recorded: exact === undefined ? null : recordOf(exact),
    /** The setting's recorded times, one of each run. */
    records: exactRows.filter((row, i) => exactRows.findIndex((other) =>
      table!.run[other] === table!.run[row]) === i).map(recordOf),
    /** Its times with all recorded column counts, in the run of its own time. */
    overColumns: () => columns.flatMap((other) => {
      const [row] = matches(parameters, ofStrategy.filter((i) =>
        table!.columns[i] === other && table!.run[i] === run));
      return row === undefined ? [] : [{ columns: other, ...recordOf(row) }];
    }),
    /** Where and when a run was recorded. */
    runName: (of: number) => table!.runs[of].where,
    /** Time of an empty launch in a run. */
    launchOf: (of: number) => table!.runs[of].launch,
    /** The run whose limit is shown: that of the setting's own time, or of another setting. */
    run: run ?? (rows.length ? table!.run[rows[0]] : null),
    /** Limit of random gathers in a run with these columns. */
    limitOf: (of: number) => table!.limit[table!.run.findIndex((other, i) =>
      other === of && table!.columns[i] === nCols)],
  };
}
