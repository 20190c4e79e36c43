/** Finds the out-of-memory messages of a log and explains each. */
import { present } from "../../model/base/present.js";
import type { FrameJson } from "../../model/documents/documents.js";
import type { OomEventJson, OomJson } from "../../model/documents/gpu/gpu_document.js";
import { adviceOf, adviceOnWindows } from "../analysis/advice.js";
import type { LogLine } from "./log/log_lines.js";
import { splitPrefix } from "./log/log_prefix.js";
import { readLogRecord, unquotedLines } from "./log/log_record.js";
import { OomEvents } from "./log/oom_events.js";
import { BfcReader, type BfcState, isBfcLine, isDriverLine } from "./messages/bfc_message.js";
import { judgeBfc } from "./messages/bfc_verdict.js";
import { continues, furtherMessages, messageAt } from "./messages/message_readers.js";
import { MessageText } from "./messages/message_text.js";
import { type OomReading, reading } from "./messages/oom_reading.js";

/** Structured logs have many records, of which few need to be parsed. */
const OF_ERRORS =
  /memory|Traceback|File \\"|_FAILED|EXHAUSTED|OOM|Stats|Limit|InUse|LargestFree|length|NCCL|ncclU|Last error/;
const TRACEBACK_FRAMES = 60;
const MOST_WRITERS = 4096;
/** A path as it occurs only on Windows. */
const WINDOWS_PATH = /(?:^|[\s"'(])[A-Z]:\\{1,2}[\w .-]/;
/** Text before a message on the same line: an exception's name, a path, an opening quote. */
const WORDS_BEFORE = 400;

/** The lines of one writer (a rank) so far. */
interface Writer {
  readonly name: string;
  readonly rank: number | null;
  readonly bfc: BfcReader;
  frames: FrameJson[];
  message: MessageText | undefined;
  previous: string;
}

/** @param pieces pieces of a log, with its lines in order */
export async function readOomLog(
  file: string,
  pieces: AsyncIterable<readonly LogLine[]>,
): Promise<OomJson> {
  const reader = new OomReader();
  let count = 0;
  for await (const lines of pieces) {
    for (const line of lines) {
      reader.take(line);
    }
    count = lines.at(-1)?.number ?? count;
  }
  return {
    schema: "tidemark.oom/1",
    file,
    lines: count,
    events: reader.finish(),
    limits: reader.limits,
  };
}

class OomReader {
  readonly limits: string[] = [];
  readonly #writers = new Map<string, Writer>();
  readonly #events = new OomEvents();
  /** The writer and the length of the previous line. */
  #last: { writer: Writer; width: number } | undefined;
  #zeros = 0;
  #windows = false;

  take({ number, text: raw, damage }: LogLine): void {
    if (damage !== undefined) {
      this.limits.push(damage);
      return;
    }
    const whole = this.#plain(raw);
    this.#windows ||= whole.includes(":\\") && WINDOWS_PATH.test(whole);
    const { writer: name, rank, text } = splitPrefix(whole);
    if ((text.includes("\\n") || text.includes('{"')) && OF_ERRORS.test(text)) {
      const record = readLogRecord(text);
      const lines = record?.lines ?? (messageAt(text) >= 0 ? unquotedLines(text) : null);
      if (lines !== null) {
        const known = record?.rank ?? rank;
        const writer = this.#writerOf(known === null ? name : `${name}#${known}`, known);
        for (const line of lines) {
          this.#takeText(writer, number, splitPrefix(line).text);
        }
        return;
      }
    }
    const writer = this.#writerOf(name, rank);
    if (name === "") {
      this.#takeWrapped(text, whole.length);
    }
    this.#takeText(writer, number, text);
    if (name !== "" || this.#last?.writer.message === undefined) {
      this.#last = { writer, width: whole.length };
    }
  }

  /** Non-breaking blanks from web pages, and zeros in files that a crash left sparse. */
  #plain(text: string): string {
    if (!/[\0\u00a0]/.test(text)) {
      return text;
    }
    if (text.includes("\0")) {
      this.#zeros += 1;
    }
    return text.replaceAll("\0", "").replaceAll("\u00a0", " ");
  }

  /**
   * A terminal wraps a prefixed line without repeating the prefix, so a following line that is not longer may
   * be its rest.
   */
  #takeWrapped(text: string, width: number): void {
    const last = this.#last;
    if (last === undefined || last.writer.name === "") {
      return;
    }
    if (width > last.width || messageAt(text) >= 0) {
      this.#last = undefined;
    } else {
      last.writer.message?.addWrapped(text);
    }
  }

  #takeText(writer: Writer, number: number, text: string): void {
    const at = isDriverLine(text) ? -1 : messageAt(text);
    const begin =
      at >= 0 ? text.slice(Math.max(0, at - WORDS_BEFORE)) : cutStart(writer.previous, text);
    if (begin !== null && (writer.message === undefined || !continues(writer.message.text, text))) {
      this.#begin(writer, number, begin, at < 0 ? 0 : Math.min(at, WORDS_BEFORE));
    } else if (writer.message !== undefined) {
      writer.message.add(text);
      if (writer.message.full) {
        this.#close(writer);
      }
    }
    writer.previous = text.length < 400 ? text : "";
    this.#takeTraceback(writer, text);
    if (writer.bfc.waits || isBfcLine(text)) {
      this.#addBfc(writer, writer.bfc.take(number, text));
    }
  }

  /** Ranks that share a stream may put several messages on one line. */
  #begin(writer: Writer, number: number, text: string, at: number): void {
    const starts = furtherMessages(text, at);
    let from = 0;
    for (const end of [...starts, text.length]) {
      this.#close(writer);
      writer.message = new MessageText(number, text.slice(from, end), writer.frames);
      writer.frames = [];
      from = end;
    }
  }

  finish(): OomEventJson[] {
    for (const writer of this.#writers.values()) {
      this.#close(writer);
      this.#addBfc(writer, writer.bfc.flush());
    }
    this.limits.push(...this.#events.limits());
    const events = this.#events.all();
    if (events.length === 0 && this.#zeros > 0) {
      this.limits.push(
        `the file does not look like text: ${this.#zeros} of its lines contain zero bytes`,
      );
    }
    if (this.#windows) {
      for (const event of events) {
        event.advice = adviceOnWindows(event.advice);
      }
    }
    return events;
  }

  #writerOf(name: string, rank: number | null): Writer {
    const known = this.#writers.get(name);
    if (known !== undefined) {
      return known;
    }
    if (this.#writers.size >= MOST_WRITERS) {
      // These are not ranks but text that looks like a prefix, so the oldest can be dropped.
      const [oldest, writer] = present(this.#writers.entries().next().value);
      this.#close(writer);
      this.#addBfc(writer, writer.bfc.flush());
      this.#writers.delete(oldest);
    }
    const made: Writer = {
      name,
      rank,
      bfc: new BfcReader(),
      frames: [],
      message: undefined,
      previous: "",
    };
    this.#writers.set(name, made);
    return made;
  }

  #takeTraceback(writer: Writer, text: string): void {
    if (/Traceback \(most recent call last\)/.test(text)) {
      writer.frames = [];
      return;
    }
    const frame = /(?:^|\s)File "([^"]{1,1000})", line (\d{1,9}), in (\S{1,200})/.exec(text);
    if (frame !== null) {
      const [, file = "", line, name = ""] = frame;
      writer.frames.unshift({ function: name, file, line: Number(line), kind: "python" });
      writer.frames.length = Math.min(writer.frames.length, TRACEBACK_FRAMES);
    }
  }

  #close(writer: Writer): void {
    const message = writer.message;
    writer.message = undefined;
    const found = message?.read() ?? null;
    if (message === undefined || found === null) {
      return;
    }
    this.#add(writer, message.line, message.stack, ofPinning(found, message.stack) ?? found);
  }

  #addBfc(writer: Writer, state: BfcState | null): void {
    if (state === null) {
      return;
    }
    const { framework, memory, line, device, request, limit, inUse } = state;
    const figures = {
      requestedBytes: request,
      totalBytes: limit,
      freeBytes: limit === null || inUse === null ? null : Math.max(0, limit - inUse),
      allocatedBytes: inUse,
    };
    const of = { framework, memory, device };
    this.#add(writer, line, writer.frames, reading(judgeBfc(state), figures, of));
  }

  #add({ name, rank }: Writer, line: number, stack: FrameJson[], found: OomReading): void {
    const { figures, verdict, conf, ...rest } = found;
    const { kind, because, advice } = verdict;
    this.#events.add({
      line,
      rank,
      writer: nameOf(name),
      ...rest,
      kind,
      because,
      ...figures,
      stack,
      repeats: 0,
      advice: adviceOf(advice, conf),
    });
  }
}

/** A prefix without its brackets: "[pod/trainer-worker-3/pytorch]". */
function nameOf(prefix: string): string {
  return prefix
    .replace(/#\d+$/, "")
    .replace(/[[\]()|]|:(?= |$)/g, " ")
    .replace(/ +/g, " ")
    .trim();
}

/** A message without figures from a thread that pins memory concerns host memory. */
function ofPinning(
  { figures, framework }: OomReading,
  stack: readonly FrameJson[],
): OomReading | null {
  const pins = stack.some(({ function: name, file }) => /pin_memory/.test(`${name} ${file}`));
  if (figures.requestedBytes !== null || framework !== "pytorch" || !pins) {
    return null;
  }
  const because =
    "host memory could not be pinned for copies to the device; the message has no figures";
  return reading({ kind: "context", because, advice: ["TM-A122"] }, {}, { memory: "host" });
}

/** The message so far, if this line completes a first line that was cut in two. */
function cutStart(previous: string, text: string): string | null {
  const head = text.slice(0, 24);
  if (previous === "" || !ENDS_START.test(head)) {
    return null;
  }
  const tail = previous.slice(-24);
  const both = `${tail}${head}`.replace(/\s+/g, "");
  const cut = /(?:CUDA|HIP|XPU|MPSbackend)outofmemory/.test(both) && messageAt(tail) < 0;
  return cut ? `${previous}\n${text}` : null;
}

/** "UDA out of memory", "f memory", "mory": the rest of a start that a line end cut. */
const ENDS_START = /^\s*(?:\S{0,10}\s*(?:o?u?t\s*)?o?f\s*)?m?e?m?o?r?y/;
