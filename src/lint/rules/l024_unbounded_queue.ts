import type { FileFacts } from "../flow/file_facts.js";
import type { Growth } from "../flow/growth.js";
import { code } from "./growing.js";
import type { Rule } from "./rule.js";

export const unboundedQueue: Rule = {
  id: "TM-L024",
  name: "unbounded-queue",
  severity: "warning",
  finds: "A queue without `maxsize` that a handler or an endless loop fills.",
  why: "If the consumer is slower than the producer, or stops, the queue grows by the difference.",
  speed: "The difference between the two rates: nothing for weeks, then gigabytes within minutes.",
  before: `
import queue

jobs = queue.Queue()

@app.post("/jobs")
def submit(request):
    jobs.put(request)
`,
  after: `
import queue

jobs = queue.Queue(maxsize=1000)

@app.post("/jobs")
def submit(request):
    jobs.put(request)
`,
  ignore: "The producer waits for the consumer in another way.",
  proof: "`tidemark diagnose` names the queue's deque as the holder.",
  *check(file) {
    const scopes = [file.module.root, ...file.module.classes, ...file.module.functions];
    for (const owner of scopes) {
      const names = new Set([...owner.writes.keys(), ...file.slots.attributesOf(owner)]);
      for (const name of names) {
        const growth = file.containers.of(file.slots.slot(owner, name));
        if (growth?.container.kind === "queue" && !growth.container.isBounded) {
          yield* reportOf(growth, file);
        }
      }
    }
  },
};

function* reportOf(growth: Growth, file: FileFacts) {
  if (growth.isChecked || isMeasured(growth, file) || isPool(growth)) {
    return;
  }
  for (const use of growth.grows) {
    const repeat = file.repeats.of(use.at);
    const isFlood =
      repeat?.kind === "handler" ||
      repeat?.kind === "endless loop" ||
      (repeat?.kind === "called" && growth.slot.kind !== "local");
    const isSentinel =
      use.value === null ||
      use.value.kind === "none" ||
      /^(?:[A-Z_]+|_?\w*sentinel\w*|_?stop\w*)$/.test(use.value.text);
    if (isFlood && !isSentinel && repeat !== null) {
      const value = file.slots.writesOf(growth.slot).find((write) => write.value !== null)?.value;
      yield {
        node: value ?? use.at,
        message: `${code(growth.slot.name)} has no ${code("maxsize")}, and gains an item ${repeat.text}: a slow consumer makes it grow without bound`,
      };
      return;
    }
  }
}

/** A pool that takes its own objects back. */
function isPool({ slot }: Growth): boolean {
  return /pool|free|idle|resource|avail|spare/i.test(`${slot.name} ${slot.owner.name}`);
}

/** Its size is read, so that the program can slow down; or it is drained at once. */
function isMeasured(growth: Growth, file: FileFacts): boolean {
  return file.slots
    .references(growth.slot)
    .some((node) => /^(?:qsize|full|join)$/.test(node.parent?.child("attribute")?.text ?? ""));
}
