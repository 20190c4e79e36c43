import { TidemarkError } from "../model/errors/errors.js";

/** null if the model, the device or the other options do not allow it. */
export function unlessRefused<Value>(made: () => Value): Value | null {
  try {
    return made();
  } catch (error) {
    if (error instanceof TidemarkError) {
      return null;
    }
    throw error;
  }
}
