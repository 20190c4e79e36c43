import { moduleEntry, type PythonRuntime } from "../cpython/index.js";
import type { Address } from "../model/base/units.js";
import { TidemarkError } from "../model/errors/errors.js";

/**
 * Checks from time to time whether a program is still running. An interpreter that exits removes `__main__`
 * from sys.modules before it frees what modules hold (Python/pylifecycle.c, finalize_modules); anything read
 * after that is from a partly destroyed heap.
 */
export function stillRunning(python: PythonRuntime): () => boolean {
  const main = mainModule(python);
  return () => {
    try {
      return mainModule(python) === main;
    } catch (error) {
      if (error instanceof TidemarkError) {
        return false; // it has ended
      }
      throw error;
    }
  };
}

function mainModule(python: PythonRuntime): Address | null {
  python.reader.forget();
  return moduleEntry(python, python.mainInterpreter, "__main__");
}
