// What was recorded of a setting on a GPU, and what its warp time alone predicts: `timing` of
// Python, from the same table.

import type { Strategy, Times, TimesTable, Value, Values } from "./types";

/** What a prediction is. */
export const PREDICTED = "the recorded time of its default setting, scaled by how its warp time " +
  "changes; what time would be if nothing else counted.";

/** A value as Python writes it in the table. */
const word = (value: Value) =>
  value === true ? "True" : value === false ? "False" : String(value);

const where = (values: Values, keep: (value: Value) => boolean) =>
  Object.fromEntries(Object.entries(values).filter(([, value]) => keep(value)));

/** `slotsOf(parameters)` returns the warp time of a setting of the strategy, null if not known. */
export function timesOf(
  table: TimesTable | undefined, strategy: Strategy, nCols: number, parameters: Values,
  slotsOf: (parameters: Values) => number | null,
): Times {
  const times: Times = {
    recorded: null, predicted: null, basis: null, limit: null, predictedOf: () => null,
    where: table?.where ?? "", graphs: table?.graphs ?? [], curves: {},
    columns: [...new Set(table?.columns)].sort((a, b) => a - b),
  };
  if (!table) return times;
  const rows = table.strategy.flatMap((name, i) =>
    name === strategy.name && table.columns[i] === nCols ? [i] : []);
  if (!rows.length) return times;
  const rowOf = (wanted: Values) => rows.find((i) =>
    Object.entries(wanted).every(([name, value]) =>
      value === null || table.setting[i][name] === word(value)));
  const defaults = Object.fromEntries(strategy.parameters.map((one) => [one.name, one.default]));
  // Numbers are settings; words and flags choose another kernel, which has a default of its own.
  const chosen = where(parameters, (value) => typeof value !== "number" && value !== null);
  const basic = { ...defaults, ...chosen };
  const exact = rowOf(parameters), basis = rowOf(basic);
  times.limit = table.limit[exact ?? basis ?? rows[0]];
  if (exact !== undefined) times.recorded = table.median[exact];
  if (basis !== undefined) {
    const time = times.basis = table.median[basis], then = slotsOf(basic);
    times.predictedOf = (other) => {
      const now = slotsOf({ ...parameters, ...other });
      return now !== null && then ? (time * now) / then : null;
    };
    times.predicted = times.predictedOf({});
  }
  for (const { name, values } of strategy.parameters) {
    const curve = values.flatMap((value) => {
      const row = typeof value === "number" ? rowOf({ ...parameters, [name]: value }) : undefined;
      return row === undefined || !(name in table.setting[row]) ? []
        : [{ value: value as number, recorded: table.median[row] }];
    });
    if (curve.length >= 3) times.curves[name] = curve;
  }
  return times;
}
