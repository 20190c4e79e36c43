/**
 * When V8 optimizes a function: after how many bytes of its bytecode have run. The optimizing compiler took a quarter of
 * a recorder's CPU time, because its functions run often but briefly; loops over a heap are still optimized within
 * milliseconds. The flag applies to all threads of the process.
 */
import { setFlagsFromString } from "node:v8";

const [major = 0] = process.versions.node.split(".").map(Number);
/** V8 12, in Node 22, counts in another way. */
const ADJUSTS = major < 22;
const RECORDER_BYTES = 1_000_000;
/** A lookup runs few functions, each over the whole heap. */
const LOOKUP_BYTES = 300_000;
/** Bytecode that is compiled into a function that calls it: V8's own limit, and one for functions that run for a second. */
const INLINED_BYTES = 920;
const LOOKUP_INLINED_BYTES = 300;

export function optimizeForRecorder(): void {
  optimizeAfter(RECORDER_BYTES, INLINED_BYTES);
}

/** Until {@link optimizeForRecorder} is called. */
export function optimizeForLookup(): void {
  optimizeAfter(LOOKUP_BYTES, LOOKUP_INLINED_BYTES);
}

function optimizeAfter(bytes: number, inlinedBytes: number): void {
  if (ADJUSTS) {
    setFlagsFromString(`--interrupt-budget=${bytes}`);
    setFlagsFromString(`--max-inlined-bytecode-size-cumulative=${inlinedBytes}`);
  }
}
