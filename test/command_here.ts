/** Runs a command line within the test's process, which saves the start of Node: for many commands on many files. */
import { vi } from "vitest";
import { runCommandLine } from "../src/cli/command_line.js";
import type { Outcome } from "./run.js";

let running: Promise<unknown> = Promise.resolve();

/**
 * As `execute([tidemark, ...args])` of a command that ends by itself, in the process's own folder. Commands wait for
 * each other: they share the process's streams.
 */
export function commandHere(...args: readonly string[]): Promise<Outcome> {
  const outcome = running.then(() => runAlone(args));
  running = outcome.catch(() => undefined);
  return outcome;
}

async function runAlone(args: readonly string[]): Promise<Outcome> {
  const said = { stdout: "", stderr: "" };
  const capture = (name: "stdout" | "stderr") =>
    vi.spyOn(process[name], "write").mockImplementation((chunk, ...rest) => {
      said[name] += typeof chunk === "string" ? chunk : Buffer.from(chunk).toString("utf8");
      for (const written of rest.filter((each) => typeof each === "function")) {
        written();
      }
      return true;
    });
  const spies = [capture("stdout"), capture("stderr")];
  const wasListening = [process.stdout, process.stderr].flatMap((each) => each.listeners("error"));
  try {
    process.exitCode = undefined;
    await runCommandLine(args);
    return { ...said, status: Number(process.exitCode ?? 0), signal: null };
  } finally {
    process.exitCode = undefined;
    for (const spy of spies) {
      spy.mockRestore();
    }
    for (const stream of [process.stdout, process.stderr]) {
      for (const listener of stream.listeners("error")) {
        if (!wasListening.includes(listener)) {
          stream.off("error", listener as () => void);
        }
      }
    }
  }
}
