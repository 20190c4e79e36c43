import type { DiagnosisPage } from "../../../src/model/diagnosis_page.js";
import { moodOf } from "./words.js";

/** The verdict in the page's head line, and the way to its tab. */
export function HeadVerdict({ page, open }: { page: DiagnosisPage; open: () => void }) {
  const { kind, confidence, summary } = page.diagnosis.verdict;
  return (
    <p className={`head-verdict verdict-${moodOf(kind)}`}>
      <b>{kind}</b> ({Math.round(confidence * 100)} % sure) · {summary}{" "}
      <button type="button" className="quiet" onClick={open}>
        Why, and what to do
      </button>
    </p>
  );
}
