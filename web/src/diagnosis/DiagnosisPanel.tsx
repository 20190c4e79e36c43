/**
 * The output of `tidemark diagnose` for the recording, with charts: verdict, growth, evidence, suspects,
 * advice. The rules ran when the page was written; nothing is judged here.
 */
import type { DiagnosisJson } from "../../../src/model/documents/diagnosis_document.js";
import type { DiagnosisPage } from "../../../src/model/documents/diagnosis_page.js";
import { remainingEvidence } from "../../../src/model/documents/verdict_text.js";
import {
  formatBytes,
  formatDuration,
  formatExactCount,
  formatGrowth,
  formatShare,
} from "../format/numbers.js";
import { Advice } from "./Advice.js";
import { LedgerGrowth } from "./LedgerGrowth.js";
import { MoreObjects } from "./MoreObjects.js";
import { Suspect } from "./Suspect.js";
import { moodOf } from "./words.js";

export function DiagnosisPanel({ page }: { page: DiagnosisPage }) {
  const { diagnosis, ownFrames } = page;
  const { suspects, limits } = diagnosis;
  return (
    <div className="diagnosis">
      <Verdict diagnosis={diagnosis} />
      <div className="diagnosis-two">
        <LedgerGrowth diagnosis={diagnosis} />
        <Evidence evidence={remainingEvidence(diagnosis)} />
      </div>
      <section aria-label="Suspects">
        <h3>{suspects.length > 1 ? `Suspects, ${suspects.length}` : "Suspect"}</h3>
        {suspects.length === 0 && <p className="missing">The verdict names no allocation site.</p>}
        {suspects.map((suspect, index) => (
          <Suspect
            key={suspect.rank}
            suspect={suspect}
            own={ownFrames[index] ?? []}
            diagnosis={diagnosis}
          />
        ))}
      </section>
      {diagnosis.census && <MoreObjects census={diagnosis.census} />}
      <Advice page={page} />
      <section aria-label="What could not be seen">
        <h3>What could not be seen</h3>
        {limits.length === 0 ? (
          <p className="missing">No evidence was missing.</p>
        ) : (
          <ul className="diagnosis-limits">
            {limits.map((limit) => (
              <li key={limit}>{limit}</li>
            ))}
          </ul>
        )}
      </section>
    </div>
  );
}

function Verdict({ diagnosis }: { diagnosis: DiagnosisJson }) {
  const { verdict, growth, window } = diagnosis;
  const { bytesPerHour, low, high, limitBytes, msToLimit, bytesPerStep } = growth;
  const isMeasured = low !== 0 || high !== 0 || verdict.kind !== "insufficient-evidence";
  return (
    <section className={`verdict verdict-${moodOf(verdict.kind)}`} aria-label="Verdict">
      <p className="verdict-kind">
        <b>{verdict.kind}</b>
        {verdict.kind !== "insufficient-evidence" && (
          <>
            <i
              aria-hidden="true"
              style={{ "--share": verdict.confidence } as React.CSSProperties}
            />
            {Math.round(verdict.confidence * 100)} % sure
          </>
        )}
      </p>
      <p className="verdict-summary">{verdict.summary}</p>
      {(diagnosis.alsoFound ?? []).map(({ kind, share, summary }) => (
        <p className="verdict-also" key={kind}>
          Also found: <b>{kind}</b> ({formatShare(share)} of the growth). {summary}
        </p>
      ))}
      <dl className="verdict-figures">
        <Figure
          name={growth.ofLiveBytes ? "Growth of live bytes" : "Growth"}
          value={isMeasured ? formatGrowth(bytesPerHour) : "–"}
          note={
            isMeasured
              ? low < high
                ? `95 % interval ${formatGrowth(low)} to ${formatGrowth(high)}`
                : "no interval is known"
              : "not measured"
          }
        />
        {bytesPerStep !== undefined && (
          <Figure name="A step" value={formatBytes(bytesPerStep)} note="of the program's work" />
        )}
        <Figure
          name="Limit"
          value={limitBytes > 0 ? formatBytes(limitBytes) : "none"}
          note={
            msToLimit > 0
              ? `reached in ${formatDuration(msToLimit)} at this rate`
              : "of the control group"
          }
        />
        <Figure
          name="Watched"
          value={formatDuration(window.endMs - window.startMs)}
          note={`${formatExactCount(window.points)} readings`}
        />
      </dl>
    </section>
  );
}

function Figure({ name, value, note }: { name: string; value: string; note: string }) {
  return (
    <div className="figure">
      <dt>{name}</dt>
      <dd className="value">{value}</dd>
      <dd className="note">{note}</dd>
    </div>
  );
}

const SAYS_ORDER = { leak: 0, "no leak": 1, silent: 2 } as const;

/** Every rule; those that found a leak come first. */
function Evidence({ evidence }: Pick<DiagnosisJson, "evidence">) {
  const rules = [...evidence].sort((a, b) => SAYS_ORDER[a.says] - SAYS_ORDER[b.says]);
  return (
    <section aria-label="Evidence">
      <h3>Evidence</h3>
      {rules.length === 0 && <p className="missing">No rule found anything.</p>}
      <ul className="evidence">
        {rules.map(({ rule, says, detail }) => (
          <li key={rule} className={`says-${says.replace(" ", "-")}`}>
            <span className="says">{says === "silent" ? "neutral" : says}</span>
            <span>
              {detail} <code className="note">{rule}</code>
            </span>
          </li>
        ))}
      </ul>
    </section>
  );
}
