// The controls: menus, sliders with a field for the number, buttons. Each has a name of its own for
// those who cannot see it, takes the keys, and leaves Tab alone.

import { clamp, ruled } from "./numbers";
import type { Value } from "./types";

type Properties<Tag extends keyof HTMLElementTagNameMap> =
  Partial<Record<keyof HTMLElementTagNameMap[Tag], unknown>> & {
    dataset?: Record<string, string>;
    attributes?: Record<string, string | number | boolean>;
  };

export function element<Tag extends keyof HTMLElementTagNameMap>(
  tag: Tag, properties: Properties<Tag> = {}, children: (Node | string)[] = [],
) {
  const { dataset, attributes, ...rest } = properties;
  const created = Object.assign(document.createElement(tag), rest);
  Object.assign(created.dataset, dataset);
  for (const [name, value] of Object.entries(attributes ?? {}))
    created.setAttribute(name, String(value));
  created.append(...children);
  return created;
}

/** Keep JupyterLab's keys from an element while it has the focus. */
export function quiet<Focusable extends HTMLElement>(focusable: Focusable) {
  focusable.dataset.lmSuppressShortcuts = "true";
  return focusable;
}

const RULE = "By rule: the strategy chooses it from the graph and the number of columns.";

export function menuControl(
  name: string, label: string, title: string, act: (value: string) => void,
) {
  const select = quiet(element("select", { dataset: { control: name } }));
  select.onchange = () => act(select.value);
  if (title) select.setAttribute("aria-description", title);
  let options = "";
  const box = element("label", { className: "av-control av-menu" },
    [element("span", { textContent: label, title }), select]);
  return {
    box,
    update(values: string[], value: string, names = values) {
      const wanted = [...values, ...names].join("\n");
      if (options !== wanted) {
        options = wanted;
        select.replaceChildren(...values.map((option, i) =>
          element("option", { value: option, textContent: names[i] })));
      }
      select.value = value;
    },
  };
}

// A slider, a field for its number, and the box around both.
function sliderAndField(name: string, label: string, title: string, className: string) {
  const range = quiet(element("input",
    { type: "range", min: 0, step: 1, dataset: { control: name } }));
  const field = quiet(element("input", { type: "number", className: "av-field" }));
  range.setAttribute("aria-label", label);
  field.setAttribute("aria-label", `${label}, as a number`);
  if (title) for (const input of [range, field]) input.setAttribute("aria-description", title);
  const box = element("div", { className: `av-control ${className}` },
    [element("span", { textContent: label, title }), range, field]);
  return { range, field, box };
}

/** A slider over some values, in order. Where they are numbers there is a field beside it, which
 *  takes any of them (the nearest, of what is typed). */
export function sliderControl<Choice extends Value>(
  name: string, label: string, title: string, act: (value: Choice) => void,
) {
  const { range, field, box } = sliderAndField(name, label, title, "av-slider");
  const output = element("output");
  box.append(output);
  let values: Choice[] = [], index = -1, chosen: Value | undefined = null;
  const numbers = () => values.filter((value) => typeof value === "number");
  range.oninput = () => act(values[Number(range.value)]);
  const takeTyped = () => {
    const wanted = Number(field.value);
    if (field.value !== "" && Number.isFinite(wanted))
      act(numbers().reduce((best, value) =>
        Math.abs(value - wanted) < Math.abs(best - wanted) ? value : best));
    show();
  };
  field.onchange = takeTyped;
  field.onkeydown = (event) => {
    const step = { ArrowUp: 1, ArrowDown: -1 }[event.key];
    if (event.key === "Enter") takeTyped();
    if (!step) return;
    event.preventDefault(); // to the next value, not to the next number
    // Stored at once: the next key may come before the page is drawn again.
    index = clamp(index + step, 0, values.length - 1);
    act(values[index]);
  };
  function show() {
    const value = values[index], isNumber = typeof value === "number";
    range.value = String(index);
    range.setAttribute("aria-valuetext", ruled(value, chosen));
    field.hidden = !isNumber;
    output.hidden = isNumber;
    if (isNumber) field.value = String(value);
    output.textContent = ruled(value, chosen);
    output.title = value === null ? RULE : "";
  }
  return {
    box,
    update(offered: Choice[], value: Choice, byRule: Value | undefined = null) {
      [values, chosen, index] = [offered, byRule, offered.indexOf(value)];
      range.max = String(offered.length - 1);
      const [least, most] = [numbers()[0], numbers().at(-1)];
      if (least !== undefined) [field.min, field.max] = [String(least), String(most)];
      show();
    },
  };
}

/** A slider over 0 to `last` with a field for the number. */
export function stepsControl(
  name: string, label: string, title: string, act: (value: number) => void,
) {
  const { range, field, box } = sliderAndField(name, label, title, "av-steps");
  field.min = "0";
  let last = 0, typing = false;
  const choose = (text: string) => act(clamp(Math.round(Number(text)), 0, last));
  range.oninput = () => choose(range.value);
  // Handlers in braces: one that returns false would keep the key from the browser, Tab included.
  const takeTyped = () => {
    typing = false;
    if (field.value !== "") choose(field.value);
  };
  field.oninput = () => {
    typing = true; // a repaint meanwhile leaves the digits alone
  };
  field.onblur = () => {
    typing = false;
  };
  field.onchange = takeTyped;
  field.onkeydown = (event) => {
    if (event.key === "Enter") takeTyped();
  };
  return {
    box,
    update(end: number, value: number) {
      last = end;
      range.max = field.max = String(end);
      range.disabled = field.disabled = end <= 0;
      range.value = String(value);
      if (!typing) field.value = String(value);
    },
  };
}

export function pressButton(name: string, label: string, title: string, act: () => void) {
  const properties = { type: "button", textContent: label, title, dataset: { control: name } };
  const button = quiet(element("button", properties));
  button.onclick = act;
  return button;
}
