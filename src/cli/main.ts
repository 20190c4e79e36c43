import { setFlagsFromString } from "node:v8";
import { optimizeForRecorder } from "../linux/this_process/optimization.js";

optimizeForRecorder();
const [major = 0] = process.versions.node.split(".").map(Number);
if (major < 22 && ["run", "check", "attach", "diagnose", "watch"].includes(process.argv[2] ?? "")) {
  // V8 collects three times in a row when a program is idle, as a recorder always is: the first time frees nearly all.
  setFlagsFromString("--memory-reducer-single-gc");
}

// Without await, because other modules may be joined with this one and wait for it.
void import("./command_line.js").then(({ runCommandLine }) =>
  runCommandLine(process.argv.slice(2)),
);
