import { defineConfig } from "vitest/config";

export default defineConfig({
  test: {
    include: ["{src,web,test,leakbench,bench}/**/*.test.{ts,tsx}", "scripts/**/*.test.mjs"],
    // Whole programs are started and recorded: a test may take long on a busy machine, and no test
    // asserts a time.
    testTimeout: 120_000,
    hookTimeout: 120_000,
    // Each worker is a process: tests change the environment and the working folder.
    pool: "forks",
    maxWorkers: 2,
  },
});
