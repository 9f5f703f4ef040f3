// What the block, or each of its warps, reads first: words, bits, and what they say.

import { safe } from "../marks.js";

const MOST = 12; // lines of a block that are written out

export function metadata(host, scene) {
  const { a } = scene;
  if (!a.metadata) {
    const why = !a.partition ? "A library does not say what its warps do."
      : !a.partition.blocks ? "There is no block: no row has a nonzero."
        : `${a.label} has no metadata: ${a.worker}s find their work from their number alone.`;
    host.innerHTML = `<p class="av-note">${safe(why)}</p>`;
    return;
  }
  const { lines } = a.metadata, several = lines.length > 1;
  const body = lines.slice(0, MOST).map((line) => line.words.map((word, i) =>
    `<tr>${several ? `<th scope="row">${i ? "" : safe(line.title)}</th>` : ""}` +
    `<td><code>0x${word.toString(16).padStart(8, "0")}</code></td>` +
    `<td><code class="av-bits">${bits(word, line.fields[i] ?? [])}</code></td>` +
    `<td>${(line.fields[i] ?? []).map((field) =>
      `${safe(field.name)}: <b>${field.value.toLocaleString("en")}</b>`).join(", ")}</td></tr>`)
    .join("")).join("");
  const more = lines.length - MOST;
  const said = [lines.length === 1 && lines[0].meaning ? `${lines[0].meaning}.` : "",
    more > 0 ? `And ${more} more.` : "", `${4 * lines[0].words.length} bytes for ` +
      `${a.metadata.owner === "block" ? "the block" : "each warp"}.`].filter(Boolean).join(" ");
  host.innerHTML = `<div class="av-scroll"><table class="av-words"><thead><tr>` +
    `${several ? "<td></td>" : ""}<th scope="col">word</th><th scope="col">bits</th>` +
    `<th scope="col">says</th></tr></thead><tbody>${body}</tbody></table></div>` +
    `<p class="av-note">${safe(said)}</p>`;
}

// 32 bits in groups of eight, every other field marked where there are several.
function bits(word, fields) {
  const digits = word.toString(2).padStart(32, "0");
  let place = 0, found = "";
  (fields.length ? fields : [{ bits: 32 }]).forEach((field, i) => {
    const own = [...digits.slice(place, place + field.bits)].map((digit, k) =>
      digit + ((place + k) % 8 === 7 && place + k < 31 ? " " : "")).join("");
    found += i % 2 === 0 && fields.length > 1 ? `<mark>${own}</mark>` : own;
    place += field.bits;
  });
  return found;
}
