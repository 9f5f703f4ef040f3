// Kernel times of a setting that were recorded on a GPU. Nothing is computed for settings between
// recorded ones.

import { parameterText } from "./numbers";
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

/** All recorded settings of a strategy; of equal settings the first in the table. */
export function allRecorded(
  table: TimesTable | undefined, strategy: Strategy, nCols: number,
): SettingTime[] {
  const times = new Map<string, SettingTime>();
  const rows = table?.strategy.flatMap((name, i) =>
    name === strategy.name && table.columns[i] === nCols ? [i] : []) ?? [];
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

/** Look up recorded times. Of equal settings the first in the table counts. */
export function timesOf(
  table: TimesTable | undefined, strategy: Strategy, nCols: number, parameters: Values,
) {
  const { where = "", graphs = [] } = table ?? {};
  const columns = [...new Set(table?.columns)].sort((a, b) => a - b);
  const rows = table?.strategy.flatMap((name, i) =>
    name === strategy.name && table.columns[i] === nCols ? [i] : []) ?? [];
  const matches = (values: Values) => rows.filter((i) => Object.entries(values).every(
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
    where, graphs, columns, curves,
    recorded: exact === undefined ? null : recordOf(exact),
    /** The setting's recorded times, of several runs. */
    records: exactRows.map(recordOf),
    /** Where and when a run was recorded. */
    runName: (of: number) => table!.runs[of].where,
    /** Time of an empty launch in a run; null if there is no time. */
    launch: rows.length ? table!.runs[table!.run[exact ?? rows[0]]].launch : null,
    limit: rows.length ? table!.limit[exact ?? rows[0]] : null,
  };
}
