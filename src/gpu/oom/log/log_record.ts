/**
 * A log line that is a record: structured loggers and container runtimes write one JSON object per line, with
 * the program's text, including escaped line ends, in one of its fields.
 *
 *   {"log":"  File \"train.py\", line 3, in step\n","stream":"stderr","time":"..."}
 *   {"level":"error","rank":3,"message":"step failed","exc_info":"Traceback ...\nRuntimeError: ..."}
 */

interface LogRecord {
  readonly rank: number | null;
  readonly lines: readonly string[];
}

/** Fields with text of the program, in the order in which it was written. */
const TEXT_FIELDS = [
  ...["log", "message", "msg", "event", "text", "textPayload", "error", "exception"],
  ...["exc_info", "exc_text", "stack_trace", "stacktrace", "traceback", "stack"],
];
const RANK_FIELDS = ["rank", "global_rank", "process_rank", "local_rank"];
/** Largest record; nobody logs larger ones. */
const DEEPEST = 4;

/** null for any other line. */
export function readLogRecord(line: string): LogRecord | null {
  const from = line.indexOf('{"');
  if (from < 0 || from > 64 || !line.trimEnd().endsWith("}")) {
    return null;
  }
  let value: unknown;
  try {
    value = JSON.parse(line.slice(from));
  } catch {
    return null;
  }
  const texts: string[] = [];
  const ranks: number[] = [];
  collect(value, 0, texts, ranks);
  if (texts.length === 0) {
    return null;
  }
  return { rank: ranks[0] ?? null, lines: texts.flatMap((text) => text.split(/\r?\n/)) };
}

function collect(value: unknown, depth: number, texts: string[], ranks: number[]): void {
  if (value === null || typeof value !== "object" || depth > DEEPEST) {
    return;
  }
  const record = value as Record<string, unknown>;
  for (const name of TEXT_FIELDS) {
    if (typeof record[name] === "string") {
      texts.push(record[name]);
    }
  }
  for (const name of RANK_FIELDS) {
    const rank = Number(record[name] ?? Number.NaN);
    if (Number.isInteger(rank) && rank >= 0) {
      ranks.push(rank);
    }
  }
  for (const inner of Object.values(record)) {
    collect(inner, depth + 1, texts, ranks);
  }
}

/** The lines of a text that is quoted as in Python or JSON on one line; null for any other text. */
export function unquotedLines(line: string): readonly string[] | null {
  if (!line.includes("\\n")) {
    return null;
  }
  return line
    .replaceAll('\\"', '"')
    .replaceAll("\\'", "'")
    .split(/(?:\\r)?\\n/);
}
