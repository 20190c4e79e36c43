import type { VerdictKind } from "../../../src/model/documents/diagnosis_document.js";
import { moodOf } from "../diagnosis/words.js";
import { formatShare } from "../format/numbers.js";

interface VerdictMarkProps {
  verdict: {
    readonly kind: string;
    readonly confidence: number;
    readonly summary: string;
    readonly instances?: number;
  };
  /** Instances that run. */
  of?: number;
}

/** A verdict's kind, with its sentence as the title. */
export function VerdictMark({ verdict, of = 1 }: VerdictMarkProps) {
  const { kind, confidence, summary, instances = 1 } = verdict;
  if (kind === "none") {
    return <span className="missing">{verdict.summary}</span>;
  }
  const share = of > 1 ? ` in ${instances} of ${of}` : "";
  return (
    <span
      className={`verdict-mark verdict-${moodOf(kind as VerdictKind)}`}
      title={confidence === 0 ? summary : `${summary} (${formatShare(confidence)} sure)`}
    >
      {kind}
      {share !== "" && <span className="wide">{share}</span>}
    </span>
  );
}
