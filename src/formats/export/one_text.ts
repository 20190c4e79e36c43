import { tooLarge } from "../../model/errors/errors.js";

/** The text that `make` returns. Engines limit the length of a string (V8: 512 MiB) and throw a RangeError for
 * longer ones.
 * @throws TidemarkError TM-E008 */
export function oneText(format: string, make: () => string): string {
  try {
    return make();
  } catch (error) {
    if (error instanceof RangeError) {
      throw tooLarge(
        `the profile as ${format}`,
        "the longest text; pprof and Parquet have no limit",
      );
    }
    throw error;
  }
}
