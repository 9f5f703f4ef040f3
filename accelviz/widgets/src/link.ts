// What is pointed at, or has the focus, is told to every view; its sentence stands at the pointer.
//
// A focus is an object: `sentence`, what is said of it; `keys`, names such as "row:1358" of what is
// to be lit wherever elements have them as `data-key`; anything else is for the views.

const GAP = 14; // pixels between the pointer, or what is pointed at, and the sentence
const TALL = 200; // pixels; of what is taller only the pointer's own place is left free
const LOW = 100; // pictures up to this high are left free as a whole

// What the sentence must not cover: what it is said of, and the words around that, which one reads.
function around(target) {
  const answer = target.closest(".av-answer"), { ownerSVGElement: picture } = target;
  const inline = !picture && getComputedStyle(target).display === "inline";
  const whole = inline ? target.parentElement : picture?.clientHeight <= LOW ? picture : target;
  const boxes = (answer ? [...answer.children] : [whole]).map((each) => each.getBoundingClientRect());
  return { top: Math.min(...boxes.map((each) => each.top)),
    bottom: Math.max(...boxes.map((each) => each.bottom)) };
}

/** Make the link of one panel: an element that is positioned, and holds all views. */
export function makeLink(panel) {
  const lights = new Set();
  const tip = document.createElement("div");
  tip.className = "av-tip";
  tip.hidden = true;
  panel.append(tip);
  let now = null;

  function place(at) {
    const box = panel.getBoundingClientRect();
    const wide = tip.offsetWidth;
    const high = tip.offsetHeight;
    const right = at.x - box.left + GAP;
    const left = right + wide > box.width ? at.x - box.left - GAP - wide : right;
    let { top, bottom } = at.target ? around(at.target) : { top: at.y, bottom: at.y };
    const fits = bottom + GAP + high <= window.innerHeight || top - GAP - high >= 0;
    if (bottom - top > TALL || !fits) top = bottom = at.y;
    const above = bottom + GAP + high > window.innerHeight;
    tip.style.left = `${Math.max(left, 0)}px`;
    tip.style.top = `${(above ? top - GAP - high : bottom + GAP) - box.top}px`;
  }

  function lightKeys() {
    for (const lit of panel.querySelectorAll(".av-lit")) lit.classList.remove("av-lit");
    for (const key of now?.keys ?? [])
      for (const same of panel.querySelectorAll(`[data-key~="${CSS.escape(key)}"]`))
        same.classList.add("av-lit");
  }

  /** Light a focus, or nothing for null; `at` is where its sentence is to stand, if anywhere: beside
   *  the point, and beside its `target`, if it has one. */
  function show(focus, at = null) {
    const same = focus === now;
    now = focus;
    if (!same) {
      lightKeys();
      for (const light of lights) light(focus);
    }
    tip.hidden = !(focus?.sentence && at);
    if (tip.hidden) return;
    if (tip.textContent !== focus.sentence) tip.textContent = focus.sentence;
    place(at);
  }

  /** Have a view's `light(focus)` called at each change; returns what ends that. */
  function add(light) {
    lights.add(light);
    return () => lights.delete(light);
  }

  /** Let `resolve(token, event)` say what the elements of `host` with `data-f="token"` are. What a
   *  token means that ends with "@" depends on where the pointer is. */
  function listen(host, resolve) {
    let token = null;
    let focus = null;
    const find = (event) => {
      const target = event.target.closest?.("[data-f]");
      if (!target) return leave();
      const again = target.dataset.f !== token || target.dataset.f.endsWith("@") || focus !== now;
      if (again) focus = resolve(target.dataset.f, event);
      token = target.dataset.f;
      show(focus, { x: event.clientX, y: event.clientY, target });
    };
    const leave = () => {
      if (focus && focus === now) show(null);
      token = focus = null;
    };
    host.addEventListener("pointermove", find);
    host.addEventListener("pointerleave", leave);
    return () => {
      host.removeEventListener("pointermove", find);
      host.removeEventListener("pointerleave", leave);
    };
  }

  // Elements that say for themselves what they are. A browser's own tooltip comes late, and not to
  // keys: a title is told as everything else is.
  const sayer = (event, also = "") => {
    const target = event.target.closest?.(`[data-say], [title]${also}`);
    if (target?.title) {
      const { title } = target;
      if (target.getAttribute("aria-label") !== title) target.setAttribute("aria-description", title);
      target.dataset.say = title;
      target.removeAttribute("title");
    }
    return target;
  };
  const told = (element) => ({
    sentence: element.dataset.say ?? "",
    keys: (element.dataset.key ?? "").split(" ").filter(Boolean),
  });
  let own = null;
  panel.addEventListener("pointerover", (event) => {
    const target = sayer(event, ", [data-key]");
    if (target) show((own = told(target)), { x: event.clientX, y: event.clientY, target });
    else if (own && own === now) show(null);
  });
  panel.addEventListener("pointerleave", () => own && own === now && show(null));
  panel.addEventListener("focusin", (event) => {
    const target = event.target.matches(":focus-visible") && sayer(event);
    if (!target) return;
    const box = target.getBoundingClientRect();
    show((own = told(target)), { x: box.left, y: box.bottom, target });
  });
  panel.addEventListener("focusout", () => own && own === now && show(null));
  panel.addEventListener("keydown", (event) => event.key === "Escape" && show(null));

  return { show, add, listen, get now() { return now; } }; // prettier-ignore
}
