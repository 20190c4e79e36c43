import { setFlagsFromString } from "node:v8";

/**
 * Raises the threshold at which V8 optimizes a function. The optimizing compiler took a quarter of a recorder's
 * CPU time, because its functions run often but briefly. Loops over a heap are still optimized within
 * milliseconds.
 */
const [major = 0] = process.versions.node.split(".").map(Number);
if (major < 22) {
  setFlagsFromString("--interrupt-budget=1000000"); // bytes of bytecode; V8 before 12
  if (process.argv[2] === "watch") {
    // V8 collects three times in a row when a program is idle, as a collector always is: the first time frees nearly all.
    setFlagsFromString("--memory-reducer-single-gc");
  }
}

// Without await, because other modules may be joined with this one and wait for it.
void import("./command_line.js").then(({ runCommandLine }) =>
  runCommandLine(process.argv.slice(2)),
);
