import type {
  DiagnosisJson,
  SuspectJson,
} from "../../../src/model/documents/diagnosis_document.js";
import { formatBytes, formatElapsed } from "../format/numbers.js";

const WIDTH = 400;
const HEIGHT = 72;

interface LiveCourseProps {
  /** "Live", or "mapped" for mappings. */
  state: string;
  history: SuspectJson["history"];
  window: DiagnosisJson["window"];
}

/** Live bytes at each snapshot, on the axis of the whole window, starting at zero. */
export function LiveCourse({ state, history, window }: LiveCourseProps) {
  const first = history[0];
  const last = history.at(-1);
  if (first === undefined || last === undefined || history.length < 2) {
    return null;
  }
  const span = Math.max(1, window.endMs - window.startMs);
  const most = history.reduce((a, { bytes }) => Math.max(a, bytes), 1);
  const x = (timeMs: number) =>
    Math.max(0, Math.min(WIDTH, ((timeMs - window.startMs) / span) * WIDTH));
  const line = history
    .map(
      ({ timeMs, bytes }) => `${x(timeMs).toFixed(1)},${((1 - bytes / most) * HEIGHT).toFixed(1)}`,
    )
    .join(" ");
  const area = `${x(first.timeMs)},${HEIGHT} ${line} ${x(last.timeMs)},${HEIGHT}`;
  return (
    <figure className="suspect-figure live-course">
      <figcaption>
        {state} bytes over time <span>up to {formatBytes(most)}</span>
      </figcaption>
      <svg
        viewBox={`0 0 ${WIDTH} ${HEIGHT}`}
        preserveAspectRatio="none"
        role="img"
        aria-label={`${formatBytes(first.bytes)} at ${formatElapsed(first.timeMs, window.startMs)}, ${formatBytes(last.bytes)} at ${formatElapsed(last.timeMs, window.startMs)}`}
      >
        <polygon points={area} />
        <polyline points={line} vectorEffect="non-scaling-stroke" />
      </svg>
      <p className="live-course-axis">
        <span>{formatElapsed(window.startMs, window.startMs)}</span>
        <span>{formatElapsed(window.endMs, window.startMs)}</span>
      </p>
    </figure>
  );
}
