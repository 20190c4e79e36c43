/**
 * Handles objects that are stored by another function than the one that created them. The storing function is
 * the first suspect, because the objects would be freed without it; it gets their growth. If the creating
 * function calls the storing one (a listener and its registry), the creator comes first.
 */
import type {
  HolderJson,
  SuspectJson,
  VerdictKind,
} from "../../model/documents/diagnosis_document.js";
import type { FrameJson } from "../../model/documents/documents.js";

/** Verdict kinds about objects that Python code holds. */
const OF_HOLDERS: ReadonlySet<VerdictKind> = new Set([
  "python-leak",
  "graph-retention",
  "child-growth",
]);

export type Unranked = Omit<SuspectJson, "rank">;

/**
 * `all`: fastest growing first. Types without a known creating stack get the line that stores them. `calls`:
 * true if the first of them names the storing function.
 */
export function withPutter(
  all: readonly Unranked[],
  kind: VerdictKind,
  calls: boolean,
): Unranked[] {
  if (!OF_HOLDERS.has(kind)) {
    return [...all];
  }
  const made = all.map(withLine);
  const [first] = made;
  const putter = putterInto(first?.holder);
  if (first === undefined || putter === null || names(first, putter)) {
    return made;
  }
  const put = made.filter(
    (suspect) => suspect.pid === first.pid && isSame(putterInto(suspect.holder), putter),
  );
  const sum = (figure: "share" | "liveBytes" | "growthBytesPerHour") =>
    put.reduce((total, suspect) => total + suspect[figure], 0);
  const { domain, pid, holder, advice } = first;
  const puts: Unranked = {
    puts: true,
    share: sum("share"),
    liveBytes: sum("liveBytes"),
    growthBytesPerHour: sum("growthBytesPerHour"),
    stack: [putter],
    domain,
    pid,
    ages: [],
    history: [],
    ...(holder ? { holder } : {}),
    advice,
  };
  return calls ? [first, puts, ...made.slice(1)] : [puts, ...made];
}

function withLine(suspect: Unranked): Unranked {
  const putter = putterInto(suspect.holder);
  return suspect.stack.length === 0 && putter !== null ? { ...suspect, stack: [putter] } : suspect;
}

/** With several candidates it may be any of them. */
function putterInto(holder: HolderJson | undefined): FrameJson | null {
  const { putters = [] } = holder ?? {};
  return putters.length === 1 ? (putters[0] as FrameJson) : null;
}

function names({ stack }: Unranked, putter: FrameJson): boolean {
  return stack.some((frame) => isSame(frame, putter));
}

/** The same function, on any line. */
function isSame(one: FrameJson | null, other: FrameJson): boolean {
  return one?.function === other.function && one.file === other.file;
}
