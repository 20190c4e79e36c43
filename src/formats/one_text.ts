import { tooLarge } from "../model/errors.js";

/** The text that `make` puts together. Engines bound a string's length (V8: 512 MiB), and say so by a
 * RangeError.
 * @throws TidemarkError TM-E008 */
export function oneText(format: string, make: () => string): string {
  try {
    return make();
  } catch (error) {
    if (error instanceof RangeError) {
      throw tooLarge(
        `the profile as ${format}`,
        "what one text holds; pprof and Parquet have none",
      );
    }
    throw error;
  }
}
