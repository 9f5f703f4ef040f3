// Entry point of the bundle "asking": predictions, questions for a class, stages of a network.

import "./panel.css";
import "./asking.css";

import { unpackText } from "./pack";
import { verdict, prediction, type PredictionData } from "./prediction";
import { question, type QuestionData } from "./question";
import { followTheme } from "./theme";
import { stages, type StagesData } from "./stages";
import { parseNumber } from "./typed";

export { parseNumber, verdict };

type Data = { key: string } & ({ kind: "prediction" } & PredictionData |
  { kind: "question" } & QuestionData | { kind: "stages" } & StagesData);

export type Answers<Answer> = ReturnType<typeof answersUnder<Answer>>;

/** Storage of an answer for as long as the browser's tab is open, also if its cell runs again. */
const answersUnder = <Answer>(key: string) => ({
  read(): Answer | null {
    try {
      return JSON.parse(sessionStorage.getItem(key) ?? "null");
    } catch { // some pages have no session storage
      return null;
    }
  },
  write(answer: Answer) {
    try {
      sessionStorage.setItem(key, JSON.stringify(answer));
    } catch {
      // the answer is not kept
    }
  },
});

/** Open the page with this id, whose data are in the script element "<id>-data". */
export async function open(id: string) {
  const data = await unpackText<Data>(document.getElementById(`${id}-data`)!.textContent!);
  const panel = Object.assign(document.createElement("div"),
    { className: "av-panel av-asked", tabIndex: -1 });
  document.getElementById(id)!.replaceChildren(panel);
  followTheme(panel);
  const key = `accelviz ${data.key}`;
  if (data.kind === "prediction") prediction(panel, data, answersUnder(key));
  else if (data.kind === "question") question(panel, data, answersUnder(key));
  else stages(panel, data, answersUnder(key));
}
