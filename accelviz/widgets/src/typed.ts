// Numbers as people type them: "0,0625", "1/16", "12 %", "3.4 µs", "2x", "1 024", "2^-10".

export const NO_NUMBER = "That is no number. Expected: a number, such as 12, 0.5 or 1/16.";

const PLAIN = String.raw`(?:\d[\d.,'_ ]*|[.,]\d+)`;
const POWER = String.raw`(?: *(?:\^|\*\*) *([+-]?\d+))`;
const TYPED = new RegExp(
  `^([+-]? *)(${PLAIN})(?:e([+-]?\\d+)| *[x*] *10${POWER}|${POWER}| */ *(${PLAIN}))?(.*)$`, "i");
const ABOUT = /^(?:~|≈|=|(?:about|around|roughly|approximately|approx\.?|circa|ca\.)(?= ))\s*/i;
const SECONDS: Record<string, number> = { s: 1, ms: 1e-3, us: 1e-6, μs: 1e-6, ns: 1e-9, seconds: 1,
  milliseconds: 1e-3, microseconds: 1e-6, nanoseconds: 1e-9 };

/** The numbers that digits with separators can stand for: none, one, or two. */
function readings(digits: string): number[] {
  const spaced = /^\d{1,3}([ '_])\d{3}(?:\1\d{3})*(?:[.,]\d*)?$/.test(digits);
  const text = spaced ? digits.replace(/[ '_]/g, "") : digits;
  if (/^[1-9]\d{0,2},\d{3}$/.test(text) && !spaced)
    return [Number(text.replace(",", "")), Number(text.replace(",", "."))];
  if (/^(?:\d+[.,]?\d*|[.,]\d+)$/.test(text)) return [Number(text.replace(",", "."))];
  if (/^\d{1,3}(?:,\d{3})+(?:\.\d*)?$/.test(text)) return [Number(text.replaceAll(",", ""))];
  if (/^\d{1,3}(?:\.\d{3})+(?:,\d*)?$/.test(text))
    return [Number(text.replaceAll(".", "").replace(",", "."))];
  return [];
}

/** The factor from a typed unit to that of the answer; undefined if the unit fits neither. */
function unitFactor(typed: string, unit: string, question: string, isPercent: boolean) {
  const name = typed.toLowerCase(), wanted = unit.toLowerCase();
  if (!name || name === wanted) return 1;
  if (/^(?:%|pct|per ?cent)$/.test(name)) return isPercent ? 1 : unit ? undefined : 0.01;
  if (/^(?:x|times|-? ?fold)$/.test(name)) return ["", "times"].includes(unit) ? 1 : undefined;
  if (wanted in SECONDS) return name in SECONDS ? SECONDS[name] / SECONDS[wanted] : undefined;
  const words = question.toLowerCase().match(/[a-zμ]+/g) ?? [];
  const isNamed = words.some((word) => [word, `${word}s`].includes(name) || word === `${name}s`);
  return isNamed && !unit ? 1 : undefined;
}

const twoNumbers = (text: string, [first, second]: number[], unit = "") =>
  `${text} can be ${first}${unit} or ${second}${unit}. Type one of these.`;

/** Parse a typed number, which may have a unit; a text is what to tell its author instead. */
export function parseNumber(typed: string, unit: string, question = ""): number | string {
  const text = typed.replace(/[⁻⁰¹²³⁴-⁹]+/g, "^$&").replace(/[¼-¾⅐-⅞]/g, " $&").normalize("NFKC")
    .replaceAll("−", "-").replaceAll("⁄", "/").replaceAll(/[×·]/g, "x")
    .replace(/\s+/g, " ").trim().replace(ABOUT, "");
  const match = TYPED.exec(text);
  if (!match) return NO_NUMBER;
  const [, sign, digits, e, tens, power, divisor, tail] = match, own = digits.trim();
  const isPercent = unit === "%" || (!unit && /percent|%/.test(question));
  const factor = unitFactor(tail.trim(), unit, question, isPercent);
  const mixed = divisor ? /^(\d+) (\d+)$/.exec(own) : null;
  let numbers = readings(own);
  if (mixed && !numbers.length) numbers = [Number(mixed[1]) * Number(divisor) + Number(mixed[2])];
  const divisors = divisor ? readings(divisor.trim()) : [1];
  for (const [part, read] of [[own, numbers], [divisor?.trim(), divisors]] as const)
    if (read.length > 1) return twoNumbers(part, read);
  if (!numbers.length || !divisors.length) return NO_NUMBER;
  if (factor === undefined)
    return `The unit "${tail.trim()}" is not clear. Expected: a number${unit && ` in ${unit}`}.`;
  const raised = power ? numbers[0] ** Number(power) : numbers[0] / divisors[0];
  const value = Number(`${raised}e${e ?? tens ?? 0}`) * factor * (sign.trim() === "-" ? -1 : 1);
  if (!Number.isFinite(value)) return NO_NUMBER;
  const isShare = divisor ? Math.abs(value) <= 1 : value !== 0 && Math.abs(value) < 1;
  if (isPercent && isShare && !tail.trim())
    return twoNumbers(text, [value, Number((100 * value).toPrecision(12))], " %");
  return value;
}
