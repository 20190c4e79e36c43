import { setFlagsFromString } from "node:v8";

/**
 * V8 optimizes functions that have run for a while; here, that is a few times longer than by default. The compiler took
 * a quarter of the CPU time of a recorder, whose functions run often and for moments; loops over a heap are optimized
 * within milliseconds all the same.
 */
const [major = 0] = process.versions.node.split(".").map(Number);
if (major < 22) {
  setFlagsFromString("--interrupt-budget=1000000"); // bytes of bytecode; V8 before 12
}

const { runCommandLine } = await import("./command_line.js");
await runCommandLine(process.argv.slice(2));
