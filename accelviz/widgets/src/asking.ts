// The pages that ask: a prediction, a question for a class, the stages of a network.

import "./panel.css";
import "./asking.css";

import { element } from "./controls";
import { unpackText } from "./pack";
import { judged, prediction, typed } from "./prediction";
import { question } from "./question";
import { stages } from "./stages";

export { judged, typed };

const KINDS = { prediction, question, stages };

/** Answers, kept while the browser's tab is open, so that a cell may run again. */
const answersUnder = (key: string) => ({
  read() {
    try {
      return JSON.parse(sessionStorage.getItem(key) ?? "null");
    } catch { // some pages have no storage
      return null;
    }
  },
  write(answer: unknown) {
    try {
      sessionStorage.setItem(key, JSON.stringify(answer));
    } catch {
      // then it is asked again
    }
  },
});

export type Answers = ReturnType<typeof answersUnder>;

/** Fill the page of this id with what it asks. */
export async function open(id: string) {
  const data = await unpackText(document.getElementById(`${id}-data`)!.textContent!);
  const panel = element("div", { className: "av-panel av-asked", tabIndex: -1 });
  document.getElementById(id)!.replaceChildren(panel);
  KINDS[data.kind as keyof typeof KINDS](panel, data, answersUnder(`accelviz ${data.key}`));
}
