/**
 * Where a program's objects pile up, and the function that puts them there did not make them: it is the first suspect,
 * for what others make would be gone without it. Its growth is theirs. Where who makes them has it put them there (a
 * listener and its registry), it stands behind who does.
 */
import type {
  HolderJson,
  SuspectJson,
  VerdictKind,
} from "../../model/documents/diagnosis_document.js";
import type { FrameJson } from "../../model/documents/documents.js";

/** Objects that something of Python's holds. */
const OF_HOLDERS: ReadonlySet<VerdictKind> = new Set([
  "python-leak",
  "graph-retention",
  "child-growth",
]);

export type Unranked = Omit<SuspectJson, "rank">;

/** `all`: fastest growing first. Types that nobody was seen to make get the line that puts them there. `calls`: the
 * first of them names who puts it there. */
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

/** Of several it may be any. */
function putterInto(holder: HolderJson | undefined): FrameJson | null {
  const { putters = [] } = holder ?? {};
  return putters.length === 1 ? (putters[0] as FrameJson) : null;
}

function names({ stack }: Unranked, putter: FrameJson): boolean {
  return stack.some((frame) => isSame(frame, putter));
}

/** The same function; its line may be any. */
function isSame(one: FrameJson | null, other: FrameJson): boolean {
  return one?.function === other.function && one.file === other.file;
}
