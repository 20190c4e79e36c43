/** The readers of messages that are one text, in the order in which they are tried. */
import { LIBRARY_START, parseLibraryMessage } from "./library_message.js";
import { continuesTableMessage, readTableMessage, TABLE_START } from "./message_table.js";
import { type OomReading, reading } from "./oom_reading.js";
import { isSource, lineWith } from "./quoted.js";
import { parseTorchMessage, TORCH_START } from "./torch_message.js";
import { confName, judgeTorchMessage } from "./torch_verdict.js";

interface MessageReader {
  readonly start: RegExp;
  readonly parse: (text: string) => OomReading | null;
}

const READERS: readonly MessageReader[] = [
  { start: TABLE_START, parse: readTableMessage },
  { start: TORCH_START, parse: readTorchMessage },
  { start: LIBRARY_START, parse: parseLibraryMessage },
];

const START = new RegExp(READERS.map(({ start }) => start.source).join("|"));
/** Most log lines have none of these words, so they are searched first. */
const WORDS =
  /[Mm]emory|MEMORY|[Aa]lloc|ALLOC|RESOURCES|NVML_SUCCESS|OutOf|To serve at least|KV cache|Hbm usage|buffer size|CUresult/;
/** A second message on the same line, from ranks that share a stream; its figures follow directly. */
const NEXT = /(?:CUDA|HIP|XPU) out of memory\. Tried to allocate/g;
/** NCCL writes one failure in several lines, and PyTorch repeats the last. */
const NCCL_LINE = /NCCL WARN|Last error:|ncclUnhandledCudaError/;
/** The most ranks that may share a stream; more messages on one line are not a log. */
const MOST_ON_A_LINE = 64;

/** Offset of a message in a line; -1 if there is none. */
export function messageAt(text: string): number {
  if (!WORDS.test(text)) {
    return -1;
  }
  const at = text.search(START);
  return at >= 0 && isSource(lineWith(text, at), at - text.lastIndexOf("\n", at - 1) - 1) ? -1 : at;
}

/** The offsets of further messages after the one at `at`. */
export function furtherMessages(text: string, at: number): number[] {
  const all = [...text.slice(at).matchAll(NEXT)].map(({ index }) => at + index);
  return all
    .filter((offset) => offset > at && text.lastIndexOf("Tried to allocate", offset) >= at)
    .slice(0, MOST_ON_A_LINE);
}

/** @param text the message and a few lines after it; null if it contains none */
export function readMessage(text: string): OomReading | null {
  for (const { parse } of READERS) {
    const found = parse(text);
    if (found !== null) {
      return found;
    }
  }
  return null;
}

/**
 * Whether a line belongs to the message so far. Some libraries print several lines, and the first may name only
 * the start.
 */
export function continues(message: string, text: string): boolean {
  const named = /Error:\s{0,8}$/.test(message) && !/Tried/.test(text);
  return (
    named ||
    (NCCL_LINE.test(message) && NCCL_LINE.test(text)) ||
    continuesTableMessage(message, text)
  );
}

function readTorchMessage(text: string): OomReading | null {
  const message = parseTorchMessage(text);
  if (message === null) {
    return null;
  }
  const { device, torch, platform, splitNamed, cause, ...figures } = message;
  return {
    ...reading(judgeTorchMessage(message), figures, { device, torch }),
    conf: confName(message),
  };
}
