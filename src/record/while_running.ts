import { moduleEntry, type PythonRuntime } from "../cpython/index.js";
import { processGone } from "../model/errors.js";

/**
 * What a look at a running program found; throws TM-E020 where the program had come to its end meanwhile. An
 * interpreter that ends takes `__main__` out of sys.modules before it frees what modules hold
 * (Python/pylifecycle.c, finalize_modules): what is read then is of a heap half taken down.
 */
export function whileRunning<Found>(python: PythonRuntime, look: () => Found): Found {
  const main = mainModule(python);
  const found = look();
  if (mainModule(python) !== main) {
    throw processGone(python.reader.memory.pid ?? 0);
  }
  return found;
}

function mainModule(python: PythonRuntime): number | null {
  python.reader.forget();
  return moduleEntry(python, python.mainInterpreter, "__main__");
}
