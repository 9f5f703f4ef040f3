// The link between views: pointing at a mark in one view highlights the same thing in all views,
// and shows a tooltip with a sentence about it. Elements with a title use the same tooltip. In a
// picture that has the keyboard's focus, arrow keys go from mark to mark and Enter presses it.

import { clamp } from "./numbers";
import type { Focus } from "./types";

const GAP = 14; // pixels between tooltip and pointer or target
const TALL = 420; // pixels; the tooltip may cover targets and pictures taller than this

/** Position of a tooltip: beside a point and, if given, not over the element `target`. */
interface Point {
  x: number; y: number; target?: Element | null;
}

export type Link = ReturnType<typeof makeLink>;
type Highlighter = (focus: Focus | null) => void;
type Resolver = (token: string, event: MouseEvent) => Focus | null;

/** The vertical range that the tooltip must not cover: the target, and text or picture around. */
function protectedRange(target: Element) {
  const answer = target.closest(".av-answer"), picture = (target as SVGElement).ownerSVGElement;
  const inline = !picture && getComputedStyle(target).display === "inline";
  const whole = inline ? target.parentElement!
    : picture && picture.clientHeight <= TALL ? picture : target;
  const boxes = (answer ? [...answer.children] : [whole]).map((box) => box.getBoundingClientRect());
  return {
    top: Math.min(...boxes.map((box) => box.top)),
    bottom: Math.max(...boxes.map((box) => box.bottom)),
  };
}

/** Make the link of a panel, a positioned element that contains all views. */
export function makeLink(panel: HTMLElement) {
  const highlighters = new Set<Highlighter>();
  const resolvers = new Map<HTMLElement, Resolver>();
  const tip = Object.assign(document.createElement("div"), { className: "av-tip", hidden: true });
  let currentFocus: Focus | null = null, titleFocus: Focus | null = null;
  panel.append(tip);

  function placeTip(at: Point) {
    const box = panel.getBoundingClientRect();
    const [tipWidth, tipHeight] = [tip.offsetWidth, tip.offsetHeight];
    const beside = at.x - box.left + GAP;
    const left = beside + tipWidth > box.width ? at.x - box.left - GAP - tipWidth : beside;
    let { top, bottom } = at.target ? protectedRange(at.target) : { top: at.y, bottom: at.y };
    const fitsBeside = bottom + GAP + tipHeight <= window.innerHeight || top - GAP - tipHeight >= 0;
    if (bottom - top > TALL || !fitsBeside) top = bottom = at.y;
    const isAbove = bottom + GAP + tipHeight > window.innerHeight;
    tip.style.left = `${Math.max(left, 0)}px`;
    tip.style.top = `${(isAbove ? top - GAP - tipHeight : bottom + GAP) - box.top}px`;
  }

  /** Highlight a focus, null for none, and show its sentence at a point, if given. */
  function show(focus: Focus | null, at: Point | null = null) {
    if (focus !== currentFocus) {
      currentFocus = focus;
      for (const highlight of highlighters) highlight(focus);
    }
    tip.hidden = !(focus?.sentence && at);
    if (tip.hidden) return;
    if (tip.textContent !== focus!.sentence) tip.textContent = focus!.sentence;
    placeTip(at!);
  }

  /** Follow the pointer over elements of `host` with `data-f="token"`; `resolve(token, event)`
   *  returns their focus. A token that ends with "@" depends on the pointer's position. */
  function listen(host: HTMLElement, resolve: Resolver) {
    resolvers.set(host, resolve);
    let token: string | null = null, focus: Focus | null = null;
    const leave = () => {
      if (focus && focus === currentFocus) show(null);
      token = focus = null;
    };
    host.addEventListener("pointermove", (event) => {
      const target = (event.target as Element).closest<HTMLElement>("[data-f]");
      if (!target) return leave();
      const hovered = target.dataset.f!;
      if (hovered !== token || hovered.endsWith("@") || focus !== currentFocus)
        focus = resolve(hovered, event);
      token = hovered;
      show(focus, { x: event.clientX, y: event.clientY, target });
    });
    host.addEventListener("pointerleave", leave);
  }

  // Show titles in the tooltip: the browser's own appears late, and not for the keyboard.
  function showTitle(event: Event, point?: { clientX: number; clientY: number }) {
    const target = (event.target as Element).closest<HTMLElement>("[data-say], [title]");
    if (!target) return hideTitle();
    const { title } = target;
    if (title) {
      if (target.getAttribute("aria-label") !== title)
        target.setAttribute("aria-description", title);
      target.dataset.say = title;
      target.removeAttribute("title");
    }
    const { left, bottom } = target.getBoundingClientRect();
    titleFocus = { sentence: target.dataset.say ?? "" };
    show(titleFocus, { x: point?.clientX ?? left, y: point?.clientY ?? bottom, target });
  }
  // --- keys ----------------------------------------------------------------------------------
  const marksOf = (picture: Element) => {
    const seen = new Set<string>();
    return [...picture.querySelectorAll<SVGElement>("[data-f], [data-say]")].filter((mark) => {
      const { f, say } = mark.dataset, token = f || say || "";
      const { width, height } = mark.getBoundingClientRect();
      if (!token || token.endsWith("@") || !width && !height || seen.has(token)) return false;
      seen.add(token);
      return true;
    });
  };

  function showMark(mark: SVGElement) {
    panel.querySelector(".av-marked")?.classList.remove("av-marked");
    mark.classList.add("av-marked");
    const box = mark.getBoundingClientRect(), { f, say } = mark.dataset;
    const at = { x: box.left + box.width / 2, y: box.top + box.height / 2, target: mark };
    const host = [...resolvers.keys()].find((one) => one.contains(mark));
    const event = new MouseEvent("click", { clientX: at.x, clientY: at.y });
    const focus = f && host ? resolvers.get(host)!(f, event) : { sentence: say ?? "" };
    tip.ariaLive = "polite";
    show(focus, at);
  }

  function onKey(event: KeyboardEvent) {
    const picture = event.target as Element;
    if (!picture.matches?.("svg[tabindex]") || event.ctrlKey || event.metaKey || event.altKey)
      return;
    const marks = marksOf(picture), last = marks.length - 1;
    const current = marks.findIndex((mark) => mark.classList.contains("av-marked"));
    const steps: Record<string, number> = {
      ArrowRight: current + 1, ArrowDown: current + 1, ArrowLeft: current - 1,
      ArrowUp: current - 1, Home: 0, End: last, PageDown: current + 10, PageUp: current - 10,
    };
    if (event.key === "Enter" && current >= 0)
      marks[current].dispatchEvent(new MouseEvent("click", { bubbles: true }));
    else if (event.key in steps && last >= 0)
      showMark(marks[clamp(steps[event.key], 0, last)]);
    else return;
    event.preventDefault();
    event.stopPropagation();
  }
  panel.addEventListener("keydown", onKey);
  panel.addEventListener("focusout", ({ target }) => {
    if (!(target as Element).matches?.("svg[tabindex]")) return;
    panel.querySelector(".av-marked")?.classList.remove("av-marked");
    tip.ariaLive = null;
    show(null);
  });

  const hideTitle = () => titleFocus && titleFocus === currentFocus && show(null);
  panel.addEventListener("pointerover", (event) => showTitle(event, event));
  panel.addEventListener("focusin", (event) =>
    (event.target as Element).matches(":focus-visible") && showTitle(event));
  // A control that is pressed has been understood: its tooltip would cover what it changes.
  panel.addEventListener("click", ({ target }) => {
    if ((target as Element).closest("button, select, input")) hideTitle();
  });
  panel.addEventListener("pointerleave", hideTitle);
  panel.addEventListener("focusout", hideTitle);
  panel.addEventListener("keydown", (event) => event.key === "Escape" && show(null));

  return {
    show, listen,
    addHighlighter: (highlighter: Highlighter) => void highlighters.add(highlighter),
    get currentFocus() { return currentFocus; },
  };
}
