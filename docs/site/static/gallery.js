// The gallery of measurements: filters cards, and shows the rows of a record as a table with filters.
"use strict";

const MOST_ROWS = 200; // rows shown at once
const MOST_CHOICES = 40; // values of a column that a list offers
const FIRST = ["graph", "operation", "strategy", "columns"]; // then the measured number
// Columns on the run and on the size of a graph: last in the table, without a filter.
const LAST = new Set(
  "run fingerprint hardware software driver cuda cupy torch pyg date commit device kernel".split(" "),
);
"graph_kind rows nonzeros nodes edges".split(" ").forEach((name) => LAST.add(name));
const MEASURES = /^(median_us|us|ms|step_ms|median_ms|reuse|accuracy|test_accuracy|ratio|tflops)$/;

const element = (name, properties = {}, ...children) => {
  const node = Object.assign(document.createElement(name), properties);
  node.append(...children);
  return node;
};

function parseCsv(text) {
  const rows = [[""]];
  let quoted = false;
  for (let i = 0; i < text.length; i++) {
    const character = text[i];
    const row = rows[rows.length - 1];
    if (quoted && character === '"' && text[i + 1] === '"') row[row.length - 1] += text[++i];
    else if (character === '"') quoted = !quoted;
    else if (!quoted && character === ",") row.push("");
    else if (!quoted && character === "\n") rows.push([""]);
    else if (quoted || character !== "\r") row[row.length - 1] += character;
  }
  if (rows[rows.length - 1].length === 1) rows.pop(); // after the last line's end
  return rows;
}

const isNumber = (text) => text !== "" && !Number.isNaN(Number(text));
const byNumber = (a, b) => (isNumber(a) && isNumber(b) ? a - b : a < b ? -1 : a > b ? 1 : 0);

// A select or an input with its label.
function field(label, control) {
  return element("label", {}, `${label} `, control);
}

function list(values, everything) {
  const options = values.map((value) => element("option", { value, textContent: value || "(empty)" }));
  return element("select", {}, element("option", { value: "*", textContent: everything }), ...options);
}

// Called by the script of a record, with its CSV.
function showRecord(name, text) {
  const card = document.querySelector(`[data-record="${name}"]`);
  const [header, ...rows] = parseCsv(text);
  const values = header.map((_, i) => [...new Set(rows.map((row) => row[i]))].sort(byNumber));
  const measure = header.findIndex((title) => MEASURES.test(title));
  const filters = new Map();
  const bar = element("div", { className: "filters" });
  header.forEach((title, i) => {
    const identifies = (measure < 0 || i < measure) && !LAST.has(title);
    if (!identifies || values[i].length < 2 || values[i].length > MOST_CHOICES) return;
    const choice = list(values[i], "all");
    filters.set(i, choice);
    bar.append(field(title, choice));
  });
  const constant = header.filter((_, i) => values[i].length === 1 && values[i][0]);
  const varying = header.map((_, i) => i).filter((i) => values[i].length > 1);
  const rank = (i) => {
    const first = FIRST.indexOf(header[i]);
    return first >= 0 ? first : i === measure ? FIRST.length : LAST.has(header[i]) ? 20 : 10;
  };
  varying.sort((a, b) => rank(a) - rank(b) || a - b);
  const same = constant.map((title) => `${title} ${values[header.indexOf(title)][0]}`).join(", ");
  const count = element("p", { ariaLive: "polite" });
  const body = element("tbody");
  let order = -1;
  let descending = false;

  function draw() {
    let chosen = rows.filter((row) =>
      [...filters].every(([i, choice]) => choice.value === "*" || row[i] === choice.value),
    );
    if (order >= 0) {
      chosen = [...chosen].sort((a, b) => byNumber(a[order], b[order]) * (descending ? -1 : 1));
    }
    const most = Math.max(...chosen.slice(0, MOST_ROWS).map((row) => Number(row[measure]) || 0));
    count.textContent =
      `${chosen.length} of ${rows.length} rows` +
      (chosen.length > MOST_ROWS ? `, the first ${MOST_ROWS} here` : "") +
      (same ? `. In every row: ${same}.` : ".");
    body.replaceChildren(
      ...chosen.slice(0, MOST_ROWS).map((row) =>
        element(
          "tr",
          {},
          ...varying.map((i) => {
            const cell = element("td", { textContent: row[i] });
            if (isNumber(row[i])) cell.className = "number";
            if (i === measure && most > 0) {
              cell.classList.add("measure");
              cell.style.setProperty("--share", `${(100 * row[i]) / most}%`);
            }
            return cell;
          }),
        ),
      ),
    );
  }

  const titles = varying.map((i) => {
    const button = element("button", { type: "button", textContent: header[i], title: "Sort" });
    button.addEventListener("click", () => {
      descending = order === i && !descending;
      order = i;
      draw();
    });
    return element("th", { scope: "col" }, button);
  });
  bar.addEventListener("change", draw);
  const table = element("table", {}, element("thead", {}, element("tr", {}, ...titles)), body);
  const scrolled = element("div", { className: "rows", tabIndex: 0 }, table);
  card.append(bar, count, scrolled);
  draw();
}

(() => {
  const cards = [...document.querySelectorAll(".record")];
  const machines = new Set(cards.flatMap((card) => card.dataset.machines.split("|")).filter(Boolean));
  const machine = list([...machines].sort(), "all");
  const words = element("input", { type: "search", placeholder: "sddmm, cora, accuracy ..." });
  const count = element("span", { ariaLive: "polite" });
  const filters = element("div", { className: "filters" });
  filters.append(field("Machine", machine), field("Words", words), count);
  document.getElementById("records").before(filters);

  function filter() {
    const wanted = words.value.toLowerCase().split(/\s+/);
    for (const card of cards) {
      const text = `${card.textContent} ${card.dataset.columns}`.toLowerCase();
      const onMachine = machine.value === "*" || card.dataset.machines.split("|").includes(machine.value);
      card.hidden = !(onMachine && wanted.every((word) => text.includes(word)));
    }
    count.textContent = `${cards.filter((card) => !card.hidden).length} of ${cards.length} records`;
  }

  for (const card of cards) {
    card.addEventListener(
      "toggle",
      () => document.body.append(element("script", { src: `records/${card.dataset.record}.js` })),
      { once: true },
    );
  }
  filters.addEventListener("input", filter);
  filter();
  const named = location.hash.slice(1) && document.querySelector(`[data-record="${location.hash.slice(1)}"]`);
  if (named) named.open = true;
})();
