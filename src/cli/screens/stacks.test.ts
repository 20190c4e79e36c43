import { expect, test } from "vitest";
import type { StacksJson } from "../../model/documents/stacks_document.js";
import { makeScreen } from "../text/output.js";
import { printStacks } from "./stacks.js";

function task(n: number, line: number): StacksJson["tasks"][number] {
  const frames = [{ function: "serve", file: "/srv/app.py", line, kind: "python" as const }];
  return { id: `0x${n}`, name: `Task-${n}`, waitsFor: [], frames };
}

test("tasks at the same place are printed once, with their number", () => {
  const lines: string[] = [];
  const screen = makeScreen({ columns: 100, cuts: false, colour: false }, (line) =>
    lines.push(line),
  );
  const tasks = [...Array.from({ length: 1000 }, (_, n) => task(n, 7)), task(2000, 9)];
  const document = {
    target: { pid: 1, python: "3.12.1" },
    pauseMs: 0,
    threads: [],
    tasks,
    limits: [],
  } as unknown as StacksJson;
  printStacks(screen, document, { quiet: true, unmatched: "" });
  expect(lines.filter((line) => line.startsWith("task"))).toEqual([
    'task "Task-0" and 999 others at the same place  waiting',
    'task "Task-2000"  waiting',
  ]);
});
