import type { PythonRuntime } from "../cpython/interpreter/locate.js";
import type { HolderBatch } from "../recording/types.js";

/** struct gc_generation: a list head of two words, then int threshold, int count. */
const THRESHOLD = 16;
const COUNT = 20;

/** The state of the garbage collector of the main interpreter; null if it cannot be read. */
export function collectorOf(python: PythonRuntime): HolderBatch["collector"] {
  const { layout, memory, mainInterpreter } = python;
  const start = mainInterpreter + layout.interpreter.gc;
  const words = new Uint8Array(4);
  const integer = (address: number) =>
    memory.readInto(address, words) === 4 ? new DataView(words.buffer).getInt32(0, true) : null;
  const enabled = integer(start + layout.gc.enabled);
  const young = start + layout.gc.generations;
  const youngThreshold = integer(young + THRESHOLD);
  const youngCount = integer(young + COUNT);
  return enabled === null || youngThreshold === null || youngCount === null
    ? null
    : { enabled: enabled !== 0, youngCount, youngThreshold };
}
