import { moduleEntry, type PythonRuntime } from "../cpython/index.js";
import type { Address } from "../model/base/units.js";
import { TidemarkError } from "../model/errors/errors.js";

/**
 * Asks now and again whether a program is still at its work. An interpreter that ends takes `__main__` out of
 * sys.modules before it frees what modules hold (Python/pylifecycle.c, finalize_modules): what is read behind
 * that is of a heap half taken down.
 */
export function stillRunning(python: PythonRuntime): () => boolean {
  const main = mainModule(python);
  return () => {
    try {
      return mainModule(python) === main;
    } catch (error) {
      if (error instanceof TidemarkError) {
        return false; // it is gone
      }
      throw error;
    }
  };
}

function mainModule(python: PythonRuntime): Address | null {
  python.reader.forget();
  return moduleEntry(python, python.mainInterpreter, "__main__");
}
