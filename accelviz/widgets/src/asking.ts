// The pages that ask: a prediction, a question for a class, the stages of a network.

import "./panel.css";
import "./asking.css";

import { unpackText } from "./pack";
import { judged, prediction, type PredictionData, typed } from "./prediction";
import { question, type QuestionData } from "./question";
import { stages, type StagesData } from "./stages";

export { judged, typed };

type Data = { key: string } & ({ kind: "prediction" } & PredictionData |
  { kind: "question" } & QuestionData | { kind: "stages" } & StagesData);

export type Answers<Answer> = ReturnType<typeof answersUnder<Answer>>;

/** An answer, kept while the browser's tab is open, so that a cell may run again. */
const answersUnder = <Answer>(key: string) => ({
  read(): Answer | null {
    try {
      return JSON.parse(sessionStorage.getItem(key) ?? "null");
    } catch { // some pages have no storage
      return null;
    }
  },
  write(answer: Answer) {
    try {
      sessionStorage.setItem(key, JSON.stringify(answer));
    } catch {
      // then it is asked again
    }
  },
});

/** Fill the page of this id with what it asks. */
export async function open(id: string) {
  const data = await unpackText<Data>(document.getElementById(`${id}-data`)!.textContent!);
  const panel = Object.assign(document.createElement("div"),
    { className: "av-panel av-asked", tabIndex: -1 });
  document.getElementById(id)!.replaceChildren(panel);
  const key = `accelviz ${data.key}`;
  if (data.kind === "prediction") prediction(panel, data, answersUnder(key));
  else if (data.kind === "question") question(panel, data, answersUnder(key));
  else stages(panel, data, answersUnder(key));
}
