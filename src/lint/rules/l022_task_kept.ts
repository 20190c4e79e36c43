import type { FileFacts } from "../flow/file_facts.js";
import { bare, statementOf } from "../syntax/expressions.js";
import type { SyntaxNode } from "../syntax/tree.js";
import { code, onlyGrows } from "./growing.js";
import type { Rule } from "./rule.js";

export const taskKept: Rule = {
  id: "TM-L022",
  name: "task-kept",
  severity: "error",
  finds:
    "Tasks, futures or threads stored in a long-lived container, without `add_done_callback(tasks.discard)` or another removal.",
  why: "A finished task keeps its result or its exception with the frames; the container keeps the task.",
  speed: "One task with its result for each call.",
  before: `
import asyncio

tasks = set()

async def handle(request):
    task = asyncio.create_task(work(request))
    tasks.add(task)
`,
  after: `
import asyncio

tasks = set()

async def handle(request):
    task = asyncio.create_task(work(request))
    tasks.add(task)
    task.add_done_callback(tasks.discard)
`,
  ignore: "A fixed number of tasks is started once.",
  proof:
    "`tidemark stacks PID` lists the tasks; `tidemark heap PID --to Task` shows the container.",
  *check(file) {
    const scopes = [file.module.root, ...file.module.classes, ...file.module.functions];
    for (const owner of scopes) {
      const names = new Set([...owner.writes.keys(), ...file.slots.attributesOf(owner)]);
      for (const name of names) {
        const growth = file.containers.of(file.slots.slot(owner, name));
        if (growth === null || !onlyGrows(growth) || file.emptiedElsewhere.has(name)) {
          continue;
        }
        const isLocal = growth.slot.kind === "local";
        const use = growth.grows.find(({ value, at, scope }) => {
          if (
            value === null ||
            !isTask(value, file) ||
            ((file.repeats.of(at)?.origin ?? "loop") === "loop" &&
              /^(?:__init__|main|start\w*|setup\w*|run|_?start_?\w*|on_startup|launch|startup)$/.test(
                scope.functionAround?.name ?? "main",
              ))
          ) {
            return false;
          }
          const repeat = file.repeats.of(at);
          return isLocal
            ? repeat?.kind === "endless loop" && !isAwaited(name, file)
            : !isAwaited(name, file);
        });
        if (use !== undefined) {
          yield {
            node: use.at,
            message: `${code(name)} keeps each finished task with its result, and nothing removes any`,
            ...discarding(use.at, use.value, growth.container.kind),
          };
        }
      }
    }
  },
};

const TASKS =
  /(?:^|\.)(?:create_task|ensure_future|run_coroutine_threadsafe|submit|start_soon|Thread|Process|Task|run_in_executor|apply_async|spawn|Timer)$/;

function isTask(value: SyntaxNode, file: FileFacts): boolean {
  const node = file.names.valueOf(bare(value));
  if (node.kind === "tuple") {
    return node.children.some((child) => isTask(child, file));
  }
  const callee = node.kind === "call" ? node.child("function") : null;
  return callee !== null && TASKS.test(callee.text);
}

/** `await asyncio.gather(*tasks)`, `for thread in threads: thread.join()`: the work has an end. */
function isAwaited(name: string, file: FileFacts): boolean {
  const references = [...file.module.identifiersNamed(name), ...file.module.attributesNamed(name)];
  return references.some((node) => {
    const outer = node.parent;
    const list = outer?.kind === "list_splat" ? outer.parent : outer;
    const call = list?.kind === "argument_list" ? list.parent : null;
    const isGathered =
      call !== null &&
      /gather|wait|as_completed|joinall|wait_all/.test(call?.child("function")?.text ?? "");
    const isLooped =
      (outer?.kind === "for_statement" || outer?.kind === "for_in_clause") &&
      /join|result|await|cancel/.test(outer.parent?.text ?? "");
    return isGathered || isLooped;
  });
}

/** The fix: one line after `tasks.add(task)`. */
function discarding(at: SyntaxNode, value: SyntaxNode | null, kind: string) {
  const statement = statementOf(at);
  const receiver = at.child("function")?.child("object")?.text;
  if (
    kind !== "set" ||
    value?.kind !== "identifier" ||
    receiver === undefined ||
    statement.children[0] !== at
  ) {
    return {};
  }
  const { source } = at;
  const line = source.lineText(statement.line);
  const indent = /^\s*/.exec(line)?.[0] ?? "";
  if (line.trim() !== statement.text) {
    return {};
  }
  const text = `\n${indent}${value.text}.add_done_callback(${receiver}.discard)`;
  return {
    fix: {
      description: "discard the task when it is done",
      edits: [{ start: statement.end, end: statement.end, text }],
    },
  };
}
