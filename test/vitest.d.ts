import type { LongTestName } from "./long.mjs";

declare module "vitest" {
  /** What vitest.config.ts provides to the tests. */
  interface ProvidedContext {
    counts: Record<LongTestName, number>;
  }
}
