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
const LOOKUP_BYTES = 400_000;

export function optimizeForRecorder(): void {
  optimizeAfter(RECORDER_BYTES);
}

/** Until {@link optimizeForRecorder} is called. */
export function optimizeForLookup(): void {
  optimizeAfter(LOOKUP_BYTES);
}

function optimizeAfter(bytes: number): void {
  if (ADJUSTS) {
    setFlagsFromString(`--interrupt-budget=${bytes}`);
  }
}
