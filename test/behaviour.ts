/** Compares a program's outcome alone and recorded: its behaviour must not change under Tidemark. */
import { expect } from "vitest";
import { execute, type Outcome, type RecordedOutcome, type RunSettings, record } from "./run.js";

export interface Compared {
  readonly plain: Outcome;
  readonly recorded: RecordedOutcome;
  /** What Tidemark itself wrote to stderr. */
  readonly ours: string;
}

/** Runs a command alone and recorded, and expects the same exit status, stdout and own stderr. */
export async function compare(
  command: readonly string[],
  settings: RunSettings = {},
): Promise<Compared> {
  const plain = await execute(command, settings);
  const recorded = await record(command, settings);
  return { plain, recorded, ours: expectSame(plain, recorded) };
}

/**
 * @param normalize removes from an output what differs between any two runs (pids, addresses)
 * @returns what Tidemark wrote to stderr
 */
export function expectSame(
  plain: Outcome,
  recorded: Outcome,
  normalize = (text: string) => text,
): string {
  const context = `stderr under Tidemark:\n${recorded.stderr}`;
  expect({ status: recorded.status, signal: recorded.signal }, context).toEqual({
    status: plain.status,
    signal: plain.signal,
  });
  expect(normalize(recorded.stdout)).toBe(normalize(plain.stdout));
  const theirs = normalize(plain.stderr);
  const all = normalize(recorded.stderr);
  expect(all).toContain(theirs);
  const ours = all.replace(theirs, "");
  expectSpeaksClearly(ours);
  return ours;
}

/** Tidemark's own output contains no stack trace from Node or Python, and no internal error. */
export function expectSpeaksClearly(text: string): void {
  expect(text).not.toMatch(/^\s+at .*[:(]\d+/m);
  expect(text).not.toMatch(
    /Traceback \(most recent|node:internal|UnhandledPromise|TM-E001|\bundefined\b|\bNaN\b|\[object /,
  );
}

/** Expects one clear line: a sentence from Tidemark, however the screen wraps it, and only once. */
export function expectSaidOnce(ours: string, reason: RegExp): void {
  const unbroken = ours.replace(/\n +/g, " ");
  expect(unbroken.match(new RegExp(reason, `g${reason.flags}`)) ?? [], ours).toHaveLength(1);
}
