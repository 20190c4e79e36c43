import type {
  DiagnosisJson,
  SuspectJson,
} from "../../../src/model/documents/diagnosis_document.js";
import type { FrameJson } from "../../../src/model/documents/documents.js";
import { stepText } from "../../../src/model/documents/holder_path.js";
import { shareBase } from "../../../src/model/documents/share_base.js";
import {
  formatBytes,
  formatDuration,
  formatElapsed,
  formatGrowth,
  formatShare,
} from "../format/numbers.js";
import { Histogram } from "../widgets/Histogram.js";
import { LiveCourse } from "./LiveCourse.js";
import { cohortsOf, holderWords, placeOf } from "./words.js";

interface SuspectProps {
  suspect: SuspectJson;
  /** For each frame: whether it is the program's own code. */
  own: readonly boolean[];
  diagnosis: DiagnosisJson;
}

const MEMORY_NAMES: Readonly<Record<SuspectJson["domain"], string>> = {
  python: "Python memory",
  native: "native memory",
  mapped: "mapped memory",
  files: "mapped files",
  device: "device memory",
};

export function Suspect({ suspect, own, diagnosis }: SuspectProps) {
  const { target, window } = diagnosis;
  const { rank, share, liveBytes, growthBytesPerHour, domain, pid, holder, type } = suspect;
  // A mapped file counts as mapped whether or not its pages are resident.
  const state = domain === "files" ? "Mapped" : "Live";
  return (
    <article className="suspect" aria-label={`Suspect ${rank}`}>
      <header>
        <i className={`dot dot-${domain}`} />
        <b>{suspect.atEnd ? formatBytes(liveBytes) : formatGrowth(growthBytesPerHour)}</b>{" "}
        {suspect.atEnd
          ? `live when memory ran out, ${formatShare(share)} of all live bytes at that time`
          : suspect.reads
            ? `become private: ${formatShare(share)} of all reads of objects created before the fork`
            : suspect.puts
              ? "stored there; allocated by other suspects"
              : suspect.partOf !== undefined
                ? `part of suspect ${suspect.partOf}`
                : `${formatShare(share)} of ${shareBase(diagnosis)}`}{" "}
        ·{" "}
        {type !== undefined && (
          <>
            <code>{type}</code> objects ·{" "}
          </>
        )}
        {liveBytes > 0 &&
          suspect.atEnd !== true &&
          `${formatBytes(liveBytes)} ${state.toLowerCase()} · `}
        {MEMORY_NAMES[domain]}
        {pid !== target.pid && ` · process ${pid}`}
      </header>
      <div className="suspect-body">
        <div>
          <Stack frames={suspect.stack} own={own} />
          <div className="held">
            <h4>Held by</h4>
            {holder ? (
              <>
                <ol className="holder-path">
                  {holder.path.map((step, index) => (
                    // biome-ignore lint/suspicious/noArrayIndexKey: a step is identified by its position
                    <li key={index}>
                      {stepText(step) === step ? <code>{step}</code> : stepText(step)}
                    </li>
                  ))}
                </ol>
                <p>{holderWords(holder)}</p>
              </>
            ) : (
              <p className="missing">The holder is unknown.</p>
            )}
          </div>
        </div>
        <div>
          <Cohorts state={state} suspect={suspect} window={window} />
          <LiveCourse state={state} history={suspect.history} window={window} />
        </div>
      </div>
    </article>
  );
}

/** The program's own frames, if any; one click shows all frames. Leaf first. */
function Stack({ frames, own }: { frames: readonly FrameJson[]; own: readonly boolean[] }) {
  const ours = frames.filter((_, index) => own[index]);
  if (frames.length === 0) {
    return <p className="missing">The stack is unknown.</p>;
  }
  return (
    <div className="suspect-stack">
      {ours.length > 0 && <Frames frames={ours} own={ours.map(() => true)} />}
      {ours.length < frames.length && (
        <details open={ours.length === 0}>
          <summary>
            {ours.length > 0 ? `Full stack, ${frames.length} frames` : "Stack without own code"}
          </summary>
          <Frames frames={frames} own={own} />
        </details>
      )}
    </div>
  );
}

function Frames({ frames, own }: { frames: readonly FrameJson[]; own: readonly boolean[] }) {
  return (
    <ol className="stack-frames">
      {frames.map((frame, index) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: a frame is identified by its position
        <li key={index} className={own[index] ? "own" : undefined}>
          <code>{frame.function || "(no symbol)"}</code>{" "}
          <span
            className="place"
            title={frame.line > 0 ? `${frame.file}:${frame.line}` : frame.file}
          >
            {placeOf(frame)}
          </span>
        </li>
      ))}
    </ol>
  );
}

/** Live bytes by time of allocation. A leak keeps every bar; a full cache loses the old ones. */
function Cohorts({
  state,
  suspect,
  window,
}: Pick<SuspectProps, "suspect"> & Pick<DiagnosisJson, "window"> & { state: string }) {
  const cohorts = cohortsOf(suspect.ages);
  if (cohorts.length === 0) {
    return <p className="missing">Ages are unknown.</p>;
  }
  const bars = cohorts.map(({ fromMs, toMs, bytes }) => {
    const age = Number.isFinite(toMs)
      ? `${formatDuration(fromMs)} to ${formatDuration(toMs)} old`
      : `older than ${formatDuration(fromMs)}`;
    return {
      value: bytes,
      label: formatElapsed(Math.max(window.startMs, window.endMs - toMs), window.startMs),
      title: `${formatBytes(bytes)}, ${age}`,
    };
  });
  return (
    <figure className="suspect-figure">
      <figcaption>
        {state} at the end, by when it was {state === "Live" ? "allocated" : "mapped"}
      </figcaption>
      <Histogram bars={bars} />
    </figure>
  );
}
