/**
 * Prefixes that launchers put before a program's line: times, ranks, workers, hosts, often several.
 *
 *   2025-08-14T10:00:00.123456789Z stderr F worker-0: [rank3]: torch.OutOfMemoryError: ...
 *   └─ kubectl --timestamps, CRI ──────────┘└ pdsh ─┘└ torchrun ┘
 */

interface PrefixedLine {
  /** Equal for lines of one writer; "" if there are only times. */
  readonly writer: string;
  readonly rank: number | null;
  readonly text: string;
}

// biome-ignore lint/suspicious/noControlCharactersInRegex: colours in a log are control characters
const COLOUR = /\x1b\[[0-9;?]{0,40}[A-Za-z]/g;

/** A time alone, as added by log collectors; a program's own time is followed by more than a blank. */
const STAMP =
  /^\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d{1,9})?(?:Z|[+-]\d\d:?\d\d)? (?:std(?:out|err) [FP] )?/;

/** Each pattern has the rank, if present, as its first group. */
const PREFIXES: readonly RegExp[] = [
  /^\[rank(\d{1,6})\]:?(?:\[[A-Z]\d[^\]]{0,200}\])?[ \t]?/, // torchrun from 2.2 on
  /^\[default(\d{1,6})\]:[ \t]?/, // torchrun with --tee
  /^\[\d{1,6},(\d{1,6})\]<std(?:err|out)>:[ \t]?/, // mpirun --tag-output
  // Ray and vLLM, which names the coordinates that have several values: a single one is the rank; with several
  // there is no rank.
  /^\((?:\w[\w:]{0,60}_(?:TP|DP|PP)(\d{1,6}) )(?<!_(?:TP|DP|PP|EP)\d{1,6}_(?:TP|DP|PP)\d{1,6} )(?:pid|ip)=[^)]{0,80}\)[ \t]?/,
  /^\((?:\w[\w:]{0,60} )?(?:rank=(\d{1,6}),? )?(?:pid|ip)=[^)]{0,80}\)[ \t]?/,
  /^\[\d{4}-\d\d-\d\d \d\d:\d\d:\d\d (?:TP|DP|PP)(\d{1,6})\] /, // SGLang
  /^\[\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(?: (?:TP|DP|PP|EP)\d{1,6}){2,4}\] /,
  /^(?:[Rr]ank|RANK)[ _:=]?(\d{1,6})[:\]|][ \t]?/,
  /^\[(?:[Rr]ank|RANK)[ _:=]?(\d{1,6})\]:?[ \t]?/,
  /^\[pod\/(?:[\w.-]{1,200}?)(?:-\w{1,16})?\/[\w.-]{1,80}\] /, // kubectl logs --prefix
  // docker compose, Kubernetes jobs. Compose counts replicas of a service from 1: only a name that mentions
  // workers contains their number.
  /^(?:[\w.-]{0,120}[_-])?(?:worker|trainer|train|rank|node|replica|launcher)-(\d{1,6}) {0,40}\| ?/,
  /^[\w.-]{1,200}-\d{1,6} {0,40}\| ?/,
  /^(\d{1,5}): /, // srun --label
  /^(?:[\w-]{1,60}-\d{1,4}|\d{1,3}(?:\.\d{1,3}){3}): (?=\[)/, // pdsh, mpirun's hosts
];
const MOST_PREFIXES = 4;
/** No prefix is longer than this. */
const LONGEST = 400;

export function splitPrefix(line: string): PrefixedLine {
  let text = line.includes("\x1b") ? line.replace(COLOUR, "") : line;
  const writer: string[] = [];
  let rank: number | null = null;
  for (let count = 0; count < MOST_PREFIXES; count++) {
    text = withoutStamp(text);
    const match = prefixOf(text.slice(0, LONGEST));
    if (match === null) {
      break;
    }
    writer.push(match[0].replace(/\d{4}-\d\d-\d\d \d\d:\d\d:\d\d ?/, "").trim());
    if (match[1] !== undefined) {
      rank = Number(match[1]);
    }
    text = text.slice(match[0].length);
  }
  return { writer: writer.join(" "), rank, text };
}

function withoutStamp(text: string): string {
  const stamp = STAMP.exec(text.slice(0, 64));
  return stamp === null ? text : text.slice(stamp[0].length);
}

function prefixOf(text: string): RegExpExecArray | null {
  for (const pattern of PREFIXES) {
    const match = pattern.exec(text);
    if (match !== null) {
      return match;
    }
  }
  return null;
}
