// Numbers as people type them: "0,0625", "1/16", "12 %", "3.4 µs", "2x", "1 024", "2^-10", "six".

export const NO_NUMBER = "That is no number. Expected: a number, such as 12, 0.5 or 1/16.";

const PLAIN = String.raw`(?:\d[\d.,'_ ]*|[.,]\d+)`;
const POWER = String.raw`(?: *(?:\^|\*\*) *([+-]?\d+))`;
const TYPED = new RegExp(
  `^([+-]? *)(${PLAIN})(?:e([+-]?\\d+)| *[x*] *10${POWER}|${POWER}| */ *(${PLAIN}))?(.*)$`, "i");
const ABOUT = new RegExp(String.raw`^(?:~|≈|(?:[a-z_]+ ?)?[=:]|`
  + String.raw`(?:about|around|roughly|approximately|approx\.?|circa|ca\.)(?= ))\s*`, "i");
const WORDS = ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight",
  "nine", "ten", "eleven", "twelve"];
const DIVISORS: Record<string, number> = { half: 2, halves: 2, third: 3, quarter: 4, fourth: 4,
  fifth: 5, sixth: 6, seventh: 7, eighth: 8, ninth: 9, tenth: 10, twelfth: 12 };
const COUNT = `(?:\\d+|${WORDS.join("|")})`;
/** "half", "a third", "two thirds", "one and a half". */
const FRACTION = new RegExp(`^(?:(${COUNT}) and )?(?:(?:(an?|${COUNT})[ -])(${
  Object.keys(DIVISORS).join("|")})s?|(half|third|quarter))\\b`, "i");
/** "6 of 12", "two out of three". */
const PART = new RegExp(`^(${COUNT})(?: out)? (?:of|von)(?: the)? (${COUNT})\\b(.*)$`, "i");
const GERMAN: Record<string, string> = { prozent: "%", mal: "times", fach: "times",
  sektor: "sector", sektoren: "sectors", zeile: "row", zeilen: "rows",
  block: "block", blöcke: "blocks", anfrage: "request", anfragen: "requests", schritt: "step",
  schritte: "steps", runde: "turn", runden: "turns", nichtnullen: "nonzeros", spalten: "columns",
  sekunden: "seconds", millisekunden: "milliseconds", mikrosekunden: "microseconds",
  nanosekunden: "nanoseconds" };
/** The units of time of each number of seconds, without the s of a plural. */
const SECONDS: [number, string[]][] = [[1, ["s", "sec", "second"]],
  [1e-3, ["ms", "msec", "millisecond"]], [1e-6, ["us", "μs", "usec", "microsec", "microsecond"]],
  [1e-9, ["ns", "nsec", "nanosecond"]]];

/** The seconds of a unit of time; undefined if the name is another one. */
const secondsOf = (name: string) =>
  SECONDS.find(([, names]) => names.some((one) => name === one || name === `${one}s`))?.[0];

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
  const lower = typed.toLowerCase(), name = GERMAN[lower.replace(/^-/, "")] ?? lower;
  const wanted = unit.toLowerCase();
  if (!name || name === wanted) return 1;
  if (/^(?:%|pct|per ?cent)(?: of .*)?$/.test(name)) return isPercent ? 1 : unit ? undefined : 0.01;
  if (/^(?:x|times(?: as [a-z]+| faster| slower| longer)?|-? ?fold)$/.test(name))
    return ["", "times"].includes(unit) ? 1 : undefined;
  const target = secondsOf(wanted), seconds = secondsOf(name);
  if (target) return seconds ? seconds / target : undefined;
  const words = question.toLowerCase().match(/[a-zμ]+/g) ?? [];
  const isNamed = words.some((word) => [word, `${word}s`].includes(name) || word === `${name}s`);
  return isNamed && !unit ? 1 : undefined;
}

const twoNumbers = (text: string, numbers: number[], unit = "") =>
  `${text} can be ${numbers.map((one) => `${Number(one.toPrecision(6))}${unit}`).join(" or ")}. `
  + "Type one of these.";

/** Digits in place of a number's word at the beginning: "six warps". */
const wordsAsDigits = (text: string) => text.replace(/^[a-z]+\b/i, (word) => {
  const number = WORDS.indexOf(word.toLowerCase());
  return number < 0 ? word : String(number);
});

/** Digits in place of a fraction's words at the beginning: "two thirds", "one and a half". */
const fractionAsDigits = (text: string) => text.replace(FRACTION,
  (_, whole?: string, count?: string, divisor?: string, single?: string) =>
    `${whole ? `${wordsAsDigits(whole)} ` : ""}${
      count && !/^an?$/i.test(count) ? wordsAsDigits(count) : 1
    }/${DIVISORS[(divisor ?? single)!.toLowerCase()]}`);

/** Parse a typed number, which may have a unit; a text is what to tell its author instead. */
export function parseNumber(typed: string, unit: string, question = ""): number | string {
  const plain = typed.replace(/[⁻⁰¹²³⁴-⁹]+/g, "^$&").replace(/[¼-¾⅐-⅞]/g, " $&").normalize("NFKC")
    .replaceAll("−", "-").replaceAll("⁄", "/").replaceAll(/[×·]/g, "x")
    .replace(/\s+/g, " ").trim().replace(ABOUT, "").replace(/ ?[!?]+$/, "")
    .replace(/^\(([^()]*)\)(?= ?[^\d]*$)/, "$1").replace(/^x ?(?=\d)/i, "");
  const part = PART.exec(plain), spelt = fractionAsDigits(plain);
  const isPercent = unit === "%" || (!unit && /percent|%/.test(question));
  if (part) {
    const [count, total] = [part[1], part[2]].map((word) => Number(wordsAsDigits(word)));
    if (!total) return NO_NUMBER;
    return isPercent ? 100 * count / total : twoNumbers(plain, [count, count / total]);
  }
  const text = wordsAsDigits(spelt);
  const match = TYPED.exec(text);
  if (!match) return NO_NUMBER;
  const [, sign, digits, e, tens, power, divisor, tail] = match, own = digits.trim();
  const factor = unitFactor(tail.trim(), unit, question, isPercent);
  const mixed = divisor ? /^(\d+) (\d+)$/.exec(own) : null;
  let numbers = readings(own);
  if (mixed && !numbers.length) numbers = [Number(mixed[1]) * Number(divisor) + Number(mixed[2])];
  const divisors = divisor ? readings(divisor.trim()) : [1];
  for (const [part, read] of [[own, numbers], [divisor?.trim(), divisors]] as const)
    if (read.length > 1) return twoNumbers(part, read);
  if (!numbers.length || !divisors.length) return NO_NUMBER;
  if (/^(?:-|–|to|or|and|bis|\.\.) ?\d/i.test(tail.trim()))
    return "These are two numbers. Expected: one.";
  if (factor === undefined)
    return `The unit "${tail.trim()}" is not clear. Expected: ${
      unit ? `a number in ${unit}` : "the number alone"}.`;
  const raised = power ? numbers[0] ** Number(power) : numbers[0] / divisors[0];
  const value = Number(`${raised}e${e ?? tens ?? 0}`) * factor * (sign.trim() === "-" ? -1 : 1);
  if (!Number.isFinite(value)) return NO_NUMBER;
  if (isPercent && spelt !== plain && !tail.trim()) return 100 * value;
  const isShare = divisor ? Math.abs(value) <= 1 : value !== 0 && Math.abs(value) < 1;
  if (isPercent && isShare && !tail.trim())
    return twoNumbers(text, [value, 100 * value], " %");
  return value;
}
