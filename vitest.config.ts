/**
 * Three projects: `unit` starts no process; `system` starts programs; `matrix` needs many interpreters,
 * PyPI packages, a browser, or attaches to processes. `npm run check` runs `unit`, `npm test` all three.
 */
import { defineConfig } from "vitest/config";
import { counts, isLong } from "./test/long.mjs";

const besideTheCode = ["{src,web,leakbench,bench}/**/*.test.{ts,tsx}", "scripts/**/*.test.mjs"];
const systemBesideTheCode = "{src,web,leakbench,bench,scripts}/**/*.system.test.{ts,tsx,mjs}";
const matrix = [
  "test/{accuracy,attach,heap,real}/**/*.test.ts",
  "test/bad/{ends,modes}.test.ts",
  "test/gpu/{jax,live,page,torch_module}.test.ts",
  "test/plan/{page,saved_tensors}.test.ts",
  "test/record/native_structures.test.ts",
  "test/server/cluster.test.ts",
  "test/server/heat_map.test.ts",
  "test/server/ingest_page.test.ts",
  "test/server/open.test.ts",
  "test/server/pages.test.ts",
  "test/server/pages_names.test.ts",
  "test/server/pages_refusals.test.ts",
  "test/server/pages_tables.test.ts",
  "test/{heap_page,ledger_core,ledger_recording,stacks_native}.test.ts",
  "test/report{,_diagnosis,_screens}.test.ts",
];

export default defineConfig({
  test: {
    // Whole programs are started and recorded: a test may take long on a busy machine, and no test
    // asserts a time.
    testTimeout: isLong ? 7_200_000 : 300_000,
    hookTimeout: 300_000,
    // By default a condition must come true within a second, which would assert a time. Tests give no time of
    // their own: it would be shorter than what the busiest machine needs.
    expect: { poll: { timeout: 100_000 } },
    // Each worker is a process: tests change the environment and the working folder.
    pool: "forks",
    // Three for two cores: much of a recording's time is waiting.
    maxWorkers: 3,
    provide: { counts },
    projects: [
      {
        extends: true,
        test: { name: "unit", include: besideTheCode, exclude: [systemBesideTheCode] },
      },
      {
        extends: true,
        test: {
          name: "system",
          include: [systemBesideTheCode, "test/**/*.test.ts"],
          exclude: matrix,
        },
      },
      { extends: true, test: { name: "matrix", include: matrix } },
    ],
  },
});
