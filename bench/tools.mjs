/** The tools whose cost is measured, as command lines. */
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { SetupError } from "../scripts/command.mjs";

const root = fileURLToPath(new URL("..", import.meta.url));

/**
 * Each tool: the words before the program. `run` is the interpreter with the workload; `inner` is
 * measure.py around it, for tools that leave the interpreter's command line as it is.
 * @type {Record<string, (c: {python: string, script: string, inner: string[], scratch: string}) => string[]>}
 */
export const tools = {
  tidemark: ({ inner, scratch }) => [
    join(root, "bin/tidemark"),
    "run",
    "--quiet",
    "-f",
    "-o",
    join(scratch, "r.tidemark"),
    "--",
    ...inner,
  ],
  "tidemark --native": ({ inner, scratch }) => [
    join(root, "bin/tidemark"),
    "run",
    "--native",
    "--quiet",
    "-f",
    "-o",
    join(scratch, "r.tidemark"),
    "--",
    ...inner,
  ],
  memray: ({ python, script, scratch }) => [
    python,
    "-m",
    "memray",
    "run",
    "-q",
    "-f",
    "-o",
    join(scratch, "m.bin"),
    script,
  ],
  "memray --native": ({ python, script, scratch }) => [
    python,
    "-m",
    "memray",
    "run",
    "-q",
    "--native",
    "-f",
    "-o",
    join(scratch, "m.bin"),
    script,
  ],
  "memray --trace-python-allocators": ({ python, script, scratch }) => [
    python,
    "-m",
    "memray",
    "run",
    "-q",
    "--trace-python-allocators",
    "-f",
    "-o",
    join(scratch, "m.bin"),
    script,
  ],
  "tracemalloc, 1 frame": ({ python, script }) => [python, "-X", "tracemalloc=1", script],
  "tracemalloc, 25 frames": ({ python, script }) => [python, "-X", "tracemalloc=25", script],
  scalene: ({ python, script, scratch }) => [
    python,
    "-m",
    "scalene",
    "run",
    "--memory", // and CPU; by default it also looks for a GPU, and hangs if there is none
    "--outfile",
    join(scratch, "s.json"),
    script,
  ],
  "memory_profiler (mprof)": ({ python, script, scratch }) => [
    python,
    "-m",
    "mprof",
    "run",
    "-o",
    join(scratch, "m.dat"),
    python,
    script,
  ],
  "ddtrace, memory": ({ python, script }) => [
    python,
    "-m",
    "ddtrace.commands.ddtrace_run",
    python,
    script,
  ],
};

/**
 * The names of the chosen tools: all of them by default.
 * @param {string | undefined} chosen names, separated by semicolons
 */
export function toolNames(chosen) {
  const names = chosen?.split(";") ?? Object.keys(tools);
  for (const name of names) {
    if (!tools[name]) {
      throw new SetupError(`no tool "${name}": it is one of ${Object.keys(tools).join("; ")}`);
    }
  }
  return names;
}
