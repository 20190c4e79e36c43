/** Finds the out-of-memory messages of a log and says what each means. */
import type { FrameJson } from "../model/documents.js";
import type { OomEventJson, OomJson } from "../model/gpu_document.js";
import { adviceOf, type ConfName } from "./advice.js";
import { BfcReader, type BfcState, isBfcLine } from "./bfc_message.js";
import type { LogLine } from "./log_lines.js";
import { splitPrefix } from "./log_prefix.js";
import { readLogRecord, unquotedLines } from "./log_record.js";
import { judgeBfc, judgeCause, type OomFigures, type OomVerdict } from "./oom_verdict.js";
import { parseServingMessage, SERVING_START } from "./serving_message.js";
import { parseTorchMessage, TORCH_START, type TorchMessage } from "./torch_message.js";

const MESSAGE = new RegExp(`${TORCH_START.source}|${SERVING_START.source}`);
/** Records of a structured log are many, and those that are opened few. */
const OF_ERRORS =
  /memory|Traceback|File \\"|_FAILED|EXHAUSTED|OOM|Stats|Limit|InUse|LargestFree|length|NCCL|ncclU|Last error/;
const OF_NCCL = /NCCL WARN|Last error:|ncclUnhandledCudaError/;
/** A message wrapped at 80 columns is this long at most. */
const MESSAGE_LINES = 16;
const MESSAGE_CHARACTERS = 8192;
const TRACEBACK_FRAMES = 60;
const MOST_WRITERS = 4096;
const MOST_EVENTS = 10_000;

/** What one writer (a rank) has said so far. */
interface Writer {
  readonly rank: number | null;
  readonly bfc: BfcReader;
  frames: FrameJson[];
  /** The message at hand. */
  message: { line: number; lines: number; text: string; stack: FrameJson[] } | undefined;
  previous: string;
}

/** @param pieces of a log, its lines in order */
export async function readOomLog(
  file: string,
  pieces: AsyncIterable<readonly LogLine[]>,
): Promise<OomJson> {
  const reader = new OomReader();
  let count = 0;
  for await (const lines of pieces) {
    for (const line of lines) reader.take(line);
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
  readonly #events: OomEventJson[] = [];
  readonly #known = new Map<string, OomEventJson>();
  #dropped = 0;

  take({ number, text: whole, damage }: LogLine): void {
    if (damage !== undefined) {
      this.limits.push(damage);
      return;
    }
    const { writer: name, rank, text } = splitPrefix(whole);
    if ((text.includes("\\n") || text.includes('{"')) && OF_ERRORS.test(text)) {
      const record = readLogRecord(text);
      const lines = record?.lines ?? (MESSAGE.test(text) ? unquotedLines(text) : null);
      if (lines !== null) {
        const known = record?.rank ?? rank;
        const writer = this.#writerOf(known === null ? name : `${name}#${known}`, known);
        for (const line of lines) this.#takeText(writer, number, splitPrefix(line).text);
        return;
      }
    }
    this.#takeText(this.#writerOf(name, rank), number, text);
  }

  #takeText(writer: Writer, number: number, text: string): void {
    const message = writer.message;
    const begin = beginning(writer.previous, text);
    if (begin !== null && (message === undefined || !continues(message.text, text))) {
      this.#closeTorch(writer);
      writer.message = { line: number, lines: 1, text: begin, stack: writer.frames };
      writer.frames = [];
    } else if (message !== undefined) {
      message.text += `\n${text}`;
      message.lines += 1;
      if (message.lines >= MESSAGE_LINES || message.text.length > MESSAGE_CHARACTERS) {
        this.#closeTorch(writer);
      }
    }
    writer.previous = text.length < 400 ? text : "";
    this.#takeTraceback(writer, text);
    if (isBfcLine(text)) {
      this.#addBfc(writer, writer.bfc.take(number, text));
    }
  }

  finish(): OomEventJson[] {
    for (const writer of this.#writers.values()) {
      this.#closeTorch(writer);
      this.#addBfc(writer, writer.bfc.flush());
    }
    if (this.#dropped > 0) {
      this.limits.push(`${this.#dropped} further messages are not listed`);
    }
    return this.#events.sort((a, b) => a.line - b.line);
  }

  #writerOf(name: string, rank: number | null): Writer {
    const known = this.#writers.get(name);
    if (known !== undefined) return known;
    if (this.#writers.size >= MOST_WRITERS) {
      // Not ranks but some text that looks like a prefix: the oldest have nothing to say any more.
      const [oldest, writer] = this.#writers.entries().next().value as [string, Writer];
      this.#closeTorch(writer);
      this.#writers.delete(oldest);
    }
    const made: Writer = {
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
    const frame = /(?:^|\s)File "([^"]+)", line (\d+), in (\S+)/.exec(text);
    if (frame !== null) {
      const [, file = "", line, name = ""] = frame;
      writer.frames.unshift({ function: name, file, line: Number(line), kind: "python" });
      writer.frames.length = Math.min(writer.frames.length, TRACEBACK_FRAMES);
    }
  }

  #closeTorch(writer: Writer): void {
    const message = writer.message;
    writer.message = undefined;
    if (message === undefined) return;
    const serving = parseServingMessage(message.text);
    if (serving !== null) {
      const { device, figures, verdict } = serving;
      this.#addMessage(writer, message, { device, torch: "", ...figures }, verdict);
      return;
    }
    const parsed = parseTorchMessage(message.text);
    if (parsed === null) return;
    const { platform, setting, cause, ...figures } = parsed;
    const verdict = ofPinning(figures, message.stack) ?? judgeCause(cause, figures);
    this.#addMessage(writer, message, figures, verdict, confName(setting, figures.torch, platform));
  }

  #addMessage(
    writer: Writer,
    { line, stack }: NonNullable<Writer["message"]>,
    figures: OomFigures & Pick<OomEventJson, "device" | "torch">,
    { kind, because, advice }: OomVerdict,
    conf?: ConfName,
  ): void {
    this.#add({
      line,
      framework: "pytorch",
      rank: writer.rank,
      ...figures,
      kind,
      because,
      stack,
      repeats: 0,
      advice: adviceOf(advice, conf),
    });
  }

  #addBfc(writer: Writer, state: BfcState | null): void {
    if (state === null) return;
    const { framework, line, device, request, limit, inUse, largestFree } = state;
    const { kind, because, advice } = judgeBfc(request, limit, inUse, largestFree, framework);
    this.#add({
      line,
      framework,
      rank: writer.rank,
      device,
      kind,
      because,
      requestedBytes: request,
      totalBytes: limit,
      freeBytes: limit === null || inUse === null ? null : limit - inUse,
      allocatedBytes: inUse,
      reservedUnallocatedBytes: null,
      processBytes: null,
      otherProcesses: [],
      privatePoolBytes: null,
      allowedBytes: null,
      torch: "",
      stack: writer.frames,
      repeats: 0,
      advice: adviceOf(advice),
    });
  }

  /** A traceback, a logger and a launcher each print the same exception: that is one event. */
  #add(event: OomEventJson): void {
    const { line, stack, repeats, advice, torch, ...figures } = event;
    const key = JSON.stringify(figures);
    const known = this.#known.get(key);
    if (known !== undefined) {
      known.repeats += 1;
      if (known.stack.length === 0) known.stack = stack;
      return;
    }
    if (this.#events.length >= MOST_EVENTS) {
      this.#dropped += 1;
      return;
    }
    this.#known.set(key, event);
    this.#events.push(event);
  }
}

/** What has no figures and comes from a thread that pins memory is about the host's. */
function ofPinning({ requestedBytes }: OomFigures, stack: readonly FrameJson[]): OomVerdict | null {
  const pins = stack.some(({ function: name, file }) => /pin_memory/.test(`${name} ${file}`));
  return requestedBytes === null && pins
    ? {
        kind: "context",
        because:
          "host memory could not be pinned for copies to the device; the message has no figures",
        advice: ["TM-A122"],
      }
    : null;
}

/** The setting as the message itself calls it; else 2.9 renamed it, and ROCm had one of its own. */
function confName(
  setting: TorchMessage["setting"],
  torch: string,
  platform: TorchMessage["platform"],
): ConfName {
  if (platform === "HIP" && setting !== "PYTORCH_ALLOC_CONF") return "PYTORCH_HIP_ALLOC_CONF";
  return setting ?? (torch === "2.9 or later" ? "PYTORCH_ALLOC_CONF" : "PYTORCH_CUDA_ALLOC_CONF");
}

/** The message so far, where this line begins one; its first words may be cut in two by the line's end. */
function beginning(previous: string, text: string): string | null {
  if (MESSAGE.test(text)) return text;
  if (previous === "" || !ENDS_START.test(text)) return null;
  const tail = previous.slice(-24);
  const both = `${tail}${text.slice(0, 24)}`.replace(/\s+/g, "");
  const cut = /(?:CUDA|HIP|XPU|MPSbackend)outofmemory/.test(both) && !MESSAGE.test(tail);
  return cut ? `${previous}\n${text}` : null;
}

/** "UDA out of memory", "f memory", "mory": what is left of a start whose line ended within it. */
const ENDS_START = /^\s*(?:\S{0,10}\s*(?:o?u?t\s*)?o?f\s*)?m?e?m?o?r?y/;

/** A second start within a message that has no figures yet is its own text once more; what a library
 * says in several lines (NCCL does) is one message. */
function continues(message: string, text: string): boolean {
  const named = /Error:\s*$/.test(message) && !/Tried/.test(text);
  return named || (OF_NCCL.test(message) && OF_NCCL.test(text));
}
