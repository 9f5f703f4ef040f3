// What was recorded of a setting on a GPU, and what its warp time alone predicts: `timing` of
// Python, from the same table.

/** What a prediction is. */
export const PREDICTED = "the recorded time of its default setting, scaled by how its warp time " +
  "changes; what time would be if nothing else counted.";

const word = (value) => value === true ? "True" : value === false ? "False" : String(value);

function matching(table, rows, parameters) {
  const wanted = Object.entries(parameters).filter(([, value]) => value !== null);
  return rows.find((i) => wanted.every(([name, value]) => table.setting[i][name] === word(value)));
}

// `slotsOf(parameters)` gives the warp time of a setting of the strategy, null if it is not known.
export function timesOf(table, strategy, nCols, parameters, slotsOf) {
  const found = { recorded: null, predicted: null, basis: null, limit: null,
    predictedOf: () => null, where: table?.where ?? "", graphs: table?.graphs ?? [], curves: {},
    columns: [...new Set(table?.columns ?? [])].sort((a, b) => a - b) };
  const rows = (table?.strategy ?? []).flatMap((name, i) =>
    name === strategy.name && table.columns[i] === nCols ? [i] : []);
  if (!rows.length) return found;
  const defaults = Object.fromEntries(strategy.parameters.map((each) => [each.name, each.default]));
  // Numbers are settings; words and flags choose another kernel, which has a default of its own.
  const kept = Object.fromEntries(
    Object.entries(parameters).filter(([, value]) => typeof value !== "number"));
  const basic = { ...defaults, ...Object.fromEntries(
    Object.entries(kept).filter(([, value]) => value !== null)) };
  const exact = matching(table, rows, parameters), basis = matching(table, rows, basic);
  found.limit = table.limit[exact ?? basis ?? rows[0]];
  if (exact !== undefined) found.recorded = table.median[exact];
  if (basis !== undefined) {
    found.basis = table.median[basis];
    const then = slotsOf(basic);
    // What warp time alone predicts of a setting; its own, or with other values.
    found.predictedOf = (other) => {
      const now = slotsOf({ ...parameters, ...other });
      return now !== null && then ? (found.basis * now) / then : null;
    };
    found.predicted = found.predictedOf({});
  }
  for (const { name, values } of strategy.parameters) {
    const curve = values.filter((value) => typeof value === "number").flatMap((value) => {
      const row = matching(table, rows, { ...parameters, [name]: value });
      return row === undefined || !(name in table.setting[row]) ? []
        : [{ value, recorded: table.median[row] }];
    });
    if (curve.length >= 3) found.curves[name] = curve;
  }
  return found;
}
