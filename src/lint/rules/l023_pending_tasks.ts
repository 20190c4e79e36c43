import { keyword, positionals, within } from "../syntax/expressions.js";
import type { Rule } from "./rule.js";

export const pendingTasks: Rule = {
  id: "TM-L023",
  name: "pending-tasks-abandoned",
  severity: "error",
  finds:
    "`asyncio.wait(..., return_when=FIRST_COMPLETED)` in a loop over tasks created in the same iteration, without cancelling the tasks that are still pending.",
  why: "A task that did not finish keeps waiting. If its event is never set, the event loop keeps the task forever, and the next iteration adds another one.",
  speed: "One task for each iteration.",
  before: `
import asyncio

async def serve(queue, stopped):
    while True:
        done, pending = await asyncio.wait(
            [asyncio.create_task(queue.get()), asyncio.create_task(stopped.wait())],
            return_when=asyncio.FIRST_COMPLETED,
        )
`,
  after: `
import asyncio

async def serve(queue, stopped):
    while True:
        done, pending = await asyncio.wait(
            [asyncio.create_task(queue.get()), asyncio.create_task(stopped.wait())],
            return_when=asyncio.FIRST_COMPLETED,
        )
        for task in pending:
            task.cancel()
`,
  ignore: "The next iteration waits for the pending tasks.",
  proof: "`tidemark stacks PID` lists the tasks, all waiting at the same line.",
  *check(file) {
    for (const call of file.module.callsOf("wait")) {
      const mode = keyword(call.node, "return_when")?.text ?? "";
      const loop = file.repeats.of(call.node);
      const [awaited] = positionals(call.node);
      if (!/FIRST_COMPLETED|FIRST_EXCEPTION/.test(mode) || loop === null || awaited === undefined) {
        continue;
      }
      const value = file.names.valueOf(awaited);
      const made = value.children.map((child) => file.names.writesOf(child).at(-1)?.value ?? child);
      const isMadeBefore =
        /^(?:set|list|tuple)$/.test(value.kind) &&
        made.some(
          ({ text, start }) => /create_task|ensure_future/.test(text) && start >= loop.node.start,
        );
      const makesTasks =
        isMadeBefore || /create_task|ensure_future|\.wait\(|\.get\(|\.recv\(/.test(value.text);
      const isMadeHere = value.start >= loop.node.start && makesTasks;
      const isCancelled = [...within(call.scope.node, "attribute")].some(
        (node) => node.child("attribute")?.text === "cancel",
      );
      const text = call.scope.node.text;
      const isReused =
        /\b(?:pending|tasks|todo|futures)\s*(?:\|=|\.add|\.update)|,\s*(?:pending|tasks)\s*=\s*await asyncio\.wait\(\s*(?:pending|tasks)/.test(
          text,
        );
      if (isMadeHere && !isCancelled && !isReused) {
        yield {
          node: call.node,
          message:
            "each iteration creates tasks and leaves the unfinished ones pending: cancel them",
        };
      }
    }
  },
};
