// To keep and to share: the call that gives this state, pictures of views, a tour, the terms.

import { element, quiet } from "./controls";
import { count, number, room, safe, words } from "./marks";
import { headsAside, named, percent } from "./numbers";
import { textOf } from "./pack";
import documentFrame from "./document.html";
import fallbackFrame from "./fallback.html";

// How Python writes a value.
const python = (value) => value === null ? "None" : value === true ? "True"
  : value === false ? "False" : typeof value === "string" ? `"${value}"` : String(value);

// The call that opens the explorer as it is now.
export function codeOf({ settings, operation, a, b, first, strategies }) {
  const changed = (side, strategy) => strategy.parameters.filter(({ name, default: usual }) =>
    side.parameters[name] !== usual).map(({ name }) => [name, side.parameters[name]]);
  const spmm = operation.name === "spmm"; // of other operations a strategy says which one is meant
  const words = [python(settings.graph), spmm ? `first=${python(settings.first)}`
    : `find_strategy(${python(settings.first)}, ${python(operation.name)})`,
    ...changed(a, first).map(([name, value]) => `${name}=${python(value)}`),
    `second=${python(settings.second)}`];
  if (b) {
    const own = changed(b, strategies.find((each) => each.name === b.strategy));
    const pinned = own.map(([name, value]) => `${python(name)}: ${python(value)}`);
    if (own.length) words.push(`pinned={${pinned.join(", ")}}`);
  }
  words.push(`n_cols=${settings.nCols}`, `row=${settings.row}`);
  const [low] = a.partition?.blocks ? a.partition.blocksOf(a.placeOf(settings.row)) : [];
  if (settings.block !== (low ?? 0)) words.push(`block=${settings.block}`); // of a row in several
  const ruled = [a, b].map((side) => Object.entries(side?.parameters ?? {}).flatMap(([name, value]) =>
    value === null && side.settled[name] !== undefined ? [`${name}=${python(side.settled[name])}`] : []));
  const said = [["", ruled[0]], ["of the second ", ruled[1]]].filter(([, own]) => own.length)
    .map(([whose, own]) => whose + own.join(", "));
  const call = `accelviz.explore(${words.join(", ")})` + (said.length ? `  # by rule: ${said.join("; ")}` : "");
  return spmm ? call : `from accelviz.strategies import find_strategy\n${call}`;
}

export async function copyText(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch { // a page from a file may not
    return false;
  }
}

function keep(blob, name) {
  const link = element("a", { href: URL.createObjectURL(blob), download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}

// What the page's styles say of every mark, written into the marks, as a file has no styles.
const STYLES = ["fill", "stroke", "stroke-width", "stroke-dasharray", "opacity", "font-family",
  "font-size", "font-weight", "text-anchor", "paint-order", "stroke-linejoin"];
const MARGIN = 20; // pixels around the pictures

function alone(svg) {
  const copy = svg.cloneNode(true), from = svg.querySelectorAll("*"), to = copy.querySelectorAll("*");
  copy.setAttribute("xmlns", "http://www.w3.org/2000/svg");
  from.forEach((mark, i) => {
    const own = getComputedStyle(mark);
    for (const name of STYLES) to[i].style.setProperty(name, own.getPropertyValue(name));
  });
  return copy;
}

// Words in as many lines as the width needs.
function linesOf(text, width, size) {
  const lines = [];
  for (const word of text.trim().split(/\s+/)) {
    const longer = lines.length ? `${lines.at(-1)} ${word}` : word;
    if (lines.length && room(longer, size) <= width) lines[lines.length - 1] = longer;
    else lines.push(word);
  }
  return lines;
}

// What is written there, without what could be pressed.
function wordsOf(part) {
  const copy = part.cloneNode(true);
  for (const each of copy.querySelectorAll(".av-presses")) each.replaceWith(".");
  return copy.textContent;
}

// A picture of what is seen: `heading` above (the first line bold), then pictures and their
// captions where they stand on the page; canvases as pictures in it.
export function svgOf(host, heading = []) {
  const area = host.getBoundingClientRect(), panel = getComputedStyle(host.closest(".av-panel"));
  const width = Math.ceil(area.width + 2 * MARGIN);
  let top = MARGIN, text = "";
  const write = (said, x, y, wide, size, weight, colour) => linesOf(said, wide, size).reduce(
    (at, line) => {
      text += words(x, at + size, line, "start",
        { "font-size": size, "font-weight": weight, fill: colour });
      return at + 1.4 * size;
    }, y);
  heading.forEach((line, i) =>
    (top = write(line, MARGIN, top, area.width, i ? 13 : 16, i ? 400 : 600, panel.color)));
  top += heading.length ? 14 : 0;
  // The row's sentence is in the heading: what stood below it moves up.
  const [way, why] = host.querySelectorAll(".av-answer > *");
  const gone = way ? way.offsetHeight + why.offsetHeight : 0;
  const from = way ? way.getBoundingClientRect().top : Infinity;
  for (const each of host.querySelectorAll("svg, canvas, .av-heading, .av-name, .av-map-title, .av-below, .av-note")) {
    const box = each.getBoundingClientRect(), own = getComputedStyle(each);
    if (!box.width || !box.height || each.parentElement.closest("svg, .av-legend, .av-below, .av-note")) continue;
    const [x, y] = [box.left - area.left + MARGIN, box.top - area.top + top - (box.top > from ? gone : 0)];
    if (each instanceof SVGElement) {
      const copy = alone(each);
      copy.setAttribute("x", x);
      copy.setAttribute("y", y);
      text += new XMLSerializer().serializeToString(copy);
    } else if (each instanceof HTMLCanvasElement) {
      text += `<image x="${x}" y="${y}" width="${box.width}" height="${box.height}" ` +
        `preserveAspectRatio="none" style="image-rendering: pixelated" href="${each.toDataURL()}"/>`;
    } else write(wordsOf(each), x, y, box.width + 2, parseFloat(own.fontSize), own.fontWeight, own.color);
  }
  const height = Math.ceil(top + area.height - gone + MARGIN);
  return { width, height, text:
    `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" ` +
    `font-family="${safe(panel.fontFamily)}"><rect width="100%" height="100%" ` +
    `fill="${panel.backgroundColor}"/>${text}</svg>` };
}

// The heading of a picture: the graph, the strategies with all their settings, the row's sentence.
export function headingOf({ graph, settings, operation, a, b }, sentence) {
  const side = (each, name) => {
    const own = Object.entries(each.parameters).map(([name, value]) =>
      named(name, value === null ? null : python(value), each.settled[name]));
    return `${name}: ${each.strategy}${own.length ? ` (${own.join(", ")})` : ""}`;
  };
  return [`${graph.name}, ${count(graph.rows, "row")}, ${count(graph.nnz, "nonzero")}, ` +
    `${count(settings.nCols, "column")} of ${operation.reads}`, side(a, "first"), ...(b ? [side(b, "second")] : []), sentence];
}

export function saveSvg(host, name, heading) {
  keep(new Blob([svgOf(host, heading).text], { type: "image/svg+xml" }), `${name}.svg`);
}

export async function savePng(host, name, heading) {
  const { text, width, height } = svgOf(host, heading);
  const image = new Image(width, height);
  image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(text)}`;
  await image.decode();
  const canvas = element("canvas", { width: 2 * width, height: 2 * height });
  const pen = canvas.getContext("2d");
  pen.scale(2, 2);
  pen.drawImage(image, 0, 0);
  canvas.toBlob((blob) => keep(blob, `${name}.png`));
}

// HTML in the places of a frame: `assets.filled` in Python.
const filled = (frame, parts) => frame.replace(/\$(\w+)/g, (_, name) => parts[name]);

/** Save the page as it is now, with the settings it shows and the last trace, as a page of its own;
 *  returns the file's name, or null where what is shown is not all in the page: then only Python can. */
export async function saveHtml(host, { graph, settings, a, b, packed, traced, tracePacked, operation }, view) {
  const style = host.previousElementSibling, data = document.getElementById(`${host.id}-data`);
  const script = data?.nextElementSibling, listed = [a, b].some((side) => side && !side.cut);
  if (style?.tagName !== "STYLE" || script?.tagName !== "SCRIPT" || listed || graph.name !== packed)
    return null;
  const waiting = [a, b].filter(Boolean).map((side) => {
    const { label, summary: { idle_share: share } } = side;
    return `${label}: ${Number.isNaN(share) ? "not known" : percent(share)}${headsAside(side)}`;
  }).join(", ");
  const fallback = filled(fallbackFrame, { graph: safe(graph.name), rows: number(graph.rows),
    nonzeros: number(graph.nnz), waiting: safe(waiting) });
  const kept = safe(JSON.stringify({ ...settings, view }));
  const trace = !tracePacked ? document.getElementById(`${host.id}-trace`)?.outerHTML ?? ""
    : traced.graph !== packed ? ""
    : `<script type="text/plain" id="${host.id}-trace" data-settings="${safe(JSON.stringify(traced))}">${await textOf(tracePacked)}</` + "script>";
  const page = `${style.outerHTML}<div class="av-page" id="${host.id}">${fallback}</div><div class="av-kept" ` +
    `hidden data-page="${host.id}" data-settings="${kept}"></div>${trace}${data.outerHTML}${script.outerHTML}`;
  const text = filled(documentFrame, { title: safe(`${graph.name}, explored with accelviz`),
    operation: safe(operation.title), page });
  keep(new Blob([text], { type: "text/html" }), `${graph.name}.html`);
  return `${graph.name}.html`;
}

// Where a tour of a minute stops: the group, the element, and what is said there.
const TOUR = [
  ["product", ".av-way-line", "One row of the graph is followed. This line says where it goes: to a " +
    "place (its position in the order in which the kernel walks the rows), to a block, to its warps, and which of them wait."],
  ["product", ".av-of-block", "A bar is a warp of the block. The block lasts as long as its " +
    "busiest warp; what is hatched is time in which a warp waits."],
  ["product", "[data-control=row]", "Drag to follow another row; the arrow keys move by one."],
  ["product", ".av-parameters > *", "These settle how the strategy cuts the work. Drag one, and watch " +
    "time and waiting above. Less waiting is not always less time: Numbers says what else costs time."],
  ["balance", "[data-view=map] .av-note", "Above is every warp of every block; these colours say how much it " +
    "has to do. A block whose cells differ waits for the one with the most."],
  ["numbers", "[data-view=statistics]", "All of it in numbers, the first setting beside the second. A " +
    "triangle upwards: the first is better."],
  ["numbers", "[data-control=pin]", "This makes the setting the second one, so that the first can move on."],
  ["play", "[data-view=play]", "Here the block is run in an emulator, and played request by " +
    "request: what each lane reads, and when a warp waits at a barrier."],
];

export function tour(panel, choose, playable) {
  const stops = TOUR.filter(([group]) => group !== "play" || playable);
  const box = element("div", { className: "av-tour", tabIndex: -1,
    attributes: { role: "dialog", "aria-label": "tour" } });
  const text = element("p");
  const press = (label, then) => {
    const button = quiet(element("button", { type: "button", textContent: label }));
    button.onclick = then;
    return button;
  };
  let at = 0;
  const end = () => {
    unmark();
    box.remove();
  };
  const unmark = () => panel.querySelector(".av-toured")?.classList.remove("av-toured");
  const back = press("Back", () => go(at - 1)), next = press("Next", () => go(at + 1));
  box.append(text, back, next, press("End", end));
  box.onkeydown = (event) => {
    if (event.key === "Escape") end();
  };
  const go = (place) => {
    if (place >= stops.length) return end();
    at = Math.max(place, 0);
    const [group, where, said] = stops[at];
    choose(group);
    unmark();
    requestAnimationFrame(() => requestAnimationFrame(() => { // by then the group is drawn
      const target = at === Math.max(place, 0) && box.isConnected && panel.querySelector(where);
      if (!target) return;
      target.classList.add("av-toured");
      const tall = target.offsetHeight > window.innerHeight * 0.7;
      target.scrollIntoView({ block: tall ? "start" : "center" });
    }));
    text.innerHTML = `<b>${at + 1} of ${stops.length}.</b> ${safe(said)}`;
    back.disabled = at === 0;
    next.textContent = at + 1 < stops.length ? "Next" : "Done";
  };
  panel.querySelector(".av-tour")?.remove();
  panel.append(box);
  go(0);
  next.focus();
}

// Terms of the glossary in a heading or a label say what they mean.
export function explained(text, glossary) {
  const lower = text.toLowerCase();
  const found = Object.keys(glossary).filter((term) =>
    new RegExp(`\\b${term.toLowerCase()}s?\\b`).test(lower));
  return found.map((term) => `${term}: ${glossary[term]}`).join("\n");
}
