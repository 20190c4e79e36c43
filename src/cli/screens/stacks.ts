import { formatCount, formatMilliseconds } from "../../model/base/numbers.js";
import type { FrameJson } from "../../model/documents/documents.js";
import type { StacksJson } from "../../model/documents/stacks_document.js";
import { oneLine } from "../../model/errors/errors.js";
import type { Screen } from "../text/output.js";
import { functionOf, placeOf } from "./sites.js";

/** Runaway recursion has thousands of frames; both ends are enough, and --json has them all. */
const MOST_FRAMES = 60;
const SHOWN_AT_END = 20;

const STATES: Readonly<Record<string, string>> = {
  R: "running",
  S: "asleep",
  D: "in uninterruptible wait",
  T: "stopped",
  t: "traced",
  Z: "ended",
};

export function printStacks(
  screen: Screen,
  document: StacksJson,
  { quiet, unmatched }: { readonly quiet: boolean; readonly unmatched: string },
): void {
  const { paint } = screen;
  const { target, threads, tasks } = document;
  if (!quiet) {
    const pause =
      document.pauseMs > 0
        ? `it was paused for ${formatMilliseconds(document.pauseMs)}`
        : "read while it ran";
    screen.line(
      paint.bold(`process ${target.pid}`) +
        paint.dim(`   Python ${target.python}, ${plural(threads.length, "thread")}; ${pause}`),
    );
    screen.line();
  }
  if (threads.length + tasks.length === 0) {
    screen.line(paint.dim(oneLine(unmatched)));
  }
  for (const thread of threads) {
    const marks = [
      thread.interpreter > 0 ? `subinterpreter ${thread.interpreter}` : "",
      thread.interpreter < 0 ? "no Python" : "",
      STATES[thread.state] ?? "",
    ].filter((mark) => mark !== "");
    const gil = thread.holdsGil ? `  ${paint.yellow("holds the GIL")}` : "";
    screen.line(
      `${paint.bold(`thread ${thread.tid} ${quoted(thread.name)}`)}  ${paint.dim(marks.join(", "))}${gil}`,
    );
    printFrames(screen, thread.frames);
    screen.line();
  }
  printTasks(screen, tasks);
  for (const line of quiet
    ? []
    : document.limits.flatMap((limit) => screen.wrap(oneLine(limit), 2))) {
    screen.line(`  ${paint.dim(line)}`);
  }
}

/** Tasks in the same state at the same place are printed once, with their number: a server has thousands. */
function printTasks(screen: Screen, tasks: StacksJson["tasks"]): void {
  const { paint } = screen;
  const names = new Map(tasks.map(({ id, name }) => [id, name]));
  const alike = new Map<string, { title: string; tasks: StacksJson["tasks"][number][] }>();
  for (const task of tasks) {
    const state = task.tid === undefined ? "waiting" : `runs on thread ${task.tid}`;
    const waited = task.waitsFor.map((id) => quoted(names.get(id) ?? id)).join(", ");
    const title = waited === "" ? state : `waits for ${waited}`;
    const key = JSON.stringify([title, task.frames]);
    const group = alike.get(key);
    if (group) {
      group.tasks.push(task);
    } else {
      alike.set(key, { title, tasks: [task] });
    }
  }
  for (const { title, tasks: group } of alike.values()) {
    const [{ name, frames }] = group as [StacksJson["tasks"][number]];
    const others = group.length - 1;
    const more =
      others > 0
        ? ` and ${formatCount(others)} other${others === 1 ? "" : "s"} at the same place`
        : "";
    screen.line(`${paint.bold(`task ${quoted(name)}`)}${more}  ${paint.dim(title)}`);
    printFrames(screen, frames);
    screen.line();
  }
}

/** Innermost first. */
function printFrames(screen: Screen, frames: readonly FrameJson[]): void {
  const { paint } = screen;
  if (frames.length === 0) {
    screen.line(paint.dim("    (no Python code)"));
  }
  const cut = frames.length > MOST_FRAMES;
  const head = cut ? frames.slice(0, MOST_FRAMES - SHOWN_AT_END) : frames;
  const tail = cut ? frames.slice(-SHOWN_AT_END) : [];
  const show = (frame: FrameJson) => {
    const name = oneLine(functionOf(frame));
    if (frame.kind === "mark") {
      screen.line(paint.dim(`    ... ${name} ...`));
    } else {
      const shown = frame.kind === "native" ? paint.cyan(name) : name;
      screen.line(`    ${shown}  ${paint.dim(oneLine(placeOf(frame)))}`);
    }
  };
  head.forEach(show);
  if (cut) {
    screen.line(paint.dim(`    ... ${formatCount(frames.length - MOST_FRAMES)} more frames ...`));
  }
  tail.forEach(show);
}

function quoted(name: string): string {
  return `"${oneLine(name)}"`;
}

function plural(count: number, word: string): string {
  return `${formatCount(count)} ${word}${count === 1 ? "" : "s"}`;
}
