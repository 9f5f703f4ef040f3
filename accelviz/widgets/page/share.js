// To keep and to share: the call that gives this state, pictures of views, a tour, the terms.

import { element, quiet } from "./controls.js";
import { safe } from "./marks.js";

// How Python writes a value.
const python = (value) => value === null ? "None" : value === true ? "True"
  : value === false ? "False" : typeof value === "string" ? `"${value}"` : String(value);

// The call that opens the explorer as it is now.
export function codeOf({ settings, a, b, first, strategies }) {
  const changed = (side, strategy) => strategy.parameters.filter(({ name, default: usual }) =>
    side.parameters[name] !== usual).map(({ name }) => [name, side.parameters[name]]);
  const words = [python(settings.graph), `first=${python(settings.first)}`,
    ...changed(a, first).map(([name, value]) => `${name}=${python(value)}`),
    `second=${python(settings.second)}`];
  if (b) {
    const own = changed(b, strategies.find((each) => each.name === b.strategy));
    const pinned = own.map(([name, value]) => `${python(name)}: ${python(value)}`);
    if (own.length) words.push(`pinned={${pinned.join(", ")}}`);
  }
  words.push(`n_cols=${settings.nCols}`, `row=${settings.row}`);
  return `accelviz.explore(${words.join(", ")})`;
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
const STYLES = ["fill", "stroke", "stroke-width", "stroke-dasharray", "opacity", "font",
  "text-anchor", "paint-order", "stroke-linejoin"];

function alone(svg) {
  const copy = svg.cloneNode(true), from = svg.querySelectorAll("*"), to = copy.querySelectorAll("*");
  copy.setAttribute("xmlns", "http://www.w3.org/2000/svg");
  from.forEach((mark, i) => {
    const own = getComputedStyle(mark);
    for (const name of STYLES) to[i].style.setProperty(name, own.getPropertyValue(name));
  });
  const back = getComputedStyle(svg.closest(".av-panel")).backgroundColor;
  copy.style.setProperty("background", back);
  return copy;
}

// All pictures of a view below each other, as one SVG; canvases as pictures in it.
export function svgOf(host) {
  const pictures = [...host.querySelectorAll("svg, canvas")];
  let top = 0, width = 1;
  const parts = pictures.map((each) => {
    const box = each.getBoundingClientRect(), place = top;
    top += box.height + 12;
    width = Math.max(width, box.width);
    if (each instanceof SVGElement) {
      const copy = alone(each);
      copy.setAttribute("y", place);
      return new XMLSerializer().serializeToString(copy);
    }
    return `<image y="${place}" width="${box.width}" height="${box.height}" ` +
      `href="${each.toDataURL()}"/>`;
  });
  const back = getComputedStyle(host.closest(".av-panel")).backgroundColor;
  return { width: Math.ceil(width), height: Math.ceil(top), text:
    `<svg xmlns="http://www.w3.org/2000/svg" width="${Math.ceil(width)}" ` +
    `height="${Math.ceil(top)}"><rect width="100%" height="100%" fill="${back}"/>` +
    `${parts.join("")}</svg>` };
}

export function saveSvg(host, name) {
  keep(new Blob([svgOf(host).text], { type: "image/svg+xml" }), `${name}.svg`);
}

export async function savePng(host, name) {
  const { text, width, height } = svgOf(host);
  const image = new Image(width, height);
  image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(text)}`;
  await image.decode();
  const canvas = element("canvas", { width: 2 * width, height: 2 * height });
  const pen = canvas.getContext("2d");
  pen.scale(2, 2);
  pen.drawImage(image, 0, 0);
  canvas.toBlob((blob) => keep(blob, `${name}.png`));
}

// Where a tour of a minute stops: the group, the element, and what is said there.
const TOUR = [
  ["product", ".av-answer", "One row of the graph is followed. This line says where it goes: to a " +
    "place (its position in the order in which the kernel walks the rows), to a block, to its warps, and which of them wait."],
  ["product", ".av-of-block", "A bar is a warp of the block. The block lasts as long as its " +
    "busiest warp; what is hatched is time in which a warp waits."],
  ["product", "[data-control=row]", "Drag to follow another row; the arrow keys move by one."],
  ["product", ".av-parameters > *", "These settle how the strategy cuts the work. Drag one, and watch " +
    "the share of waiting above."],
  ["balance", "[data-view=map]", "Every warp of every block: dark has much to do. A block whose " +
    "cells differ waits for its darkest."],
  ["numbers", "[data-view=statistics]", "All of it in numbers, A beside B. A triangle upwards: A " +
    "is better."],
  ["numbers", "[data-control=pin]", "This pins the setting as B, so that A can move on."],
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
