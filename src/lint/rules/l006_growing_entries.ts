import type { FileFacts } from "../flow/file_facts.js";
import type { Growth } from "../flow/growth.js";
import { isConstant, isTypeLike } from "../flow/registration.js";
import { code } from "./growing.js";
import type { Rule } from "./rule.js";

export const growingEntries: Rule = {
  id: "TM-L006",
  name: "growing-entries",
  severity: "error",
  finds:
    "A dict whose number of keys is limited, or whose old keys are removed, while the lists in it only grow.",
  why: "The limit counts keys. A key that stays in use keeps its list, and the list is never shortened.",
  speed: "One item for each call with an existing key.",
  before: `
from collections import defaultdict

events = defaultdict(list)

def on_event(event):
    events[event.user].append(event)
    while len(events) > 1000:
        events.pop(next(iter(events)))
`,
  after: `
from collections import defaultdict, deque

events = defaultdict(lambda: deque(maxlen=100))

def on_event(event):
    events[event.user].append(event)
    while len(events) > 1000:
        events.pop(next(iter(events)))
`,
  ignore: "Each key is removed after a short time, together with its list.",
  proof: "`tidemark diagnose` names the line that appends, and the holder as `dict > list`.",
  *check(file) {
    const owners = [file.module.root, ...file.module.classes];
    for (const owner of owners) {
      const names = new Set([...owner.writes.keys(), ...file.slots.attributesOf(owner)]);
      for (const name of names) {
        const growth = file.containers.of(file.slots.slot(owner, name));
        if (growth !== null) {
          yield* check(growth, file);
        }
      }
    }
  },
};

function* check(
  growth: Growth,
  file: FileFacts,
): ReturnType<Rule["check"]> extends Iterable<infer R> ? Generator<R> : never {
  const { slot, container, elementGrows, elementShrinks, shrinks, isChecked } = growth;
  if (
    container.kind !== "dict" ||
    elementShrinks.length > 0 ||
    container.elements === "dict" ||
    container.elements === "bounded"
  ) {
    return;
  }
  // Code that takes whole entries out for good empties them.
  const takesAll = shrinks.some(
    ({ by }) => by === "clear" || by === "=" || (by === "popitem" && !isChecked),
  );
  const isLimited = container.isBounded || isChecked;
  const use = elementGrows.find(
    ({ at, by, key, scope }) =>
      scope.functionAround !== null &&
      /^(?:append|add|extend|appendleft|insert|\+=)$/.test(by) &&
      (!isTypeLike(key) || (isConstant(key) && hasFixedKeys(growth, file))) &&
      (file.repeats.of(at) !== null || slot.kind === "module" || isLimited),
  );
  const isDropped = shrinks.length > 0 && !isLimited;
  if (use === undefined || takesAll || isDropped) {
    return;
  }
  const repeat = file.repeats.of(use.at);
  const isRepeated =
    repeat !== null && (repeat.origin === "handler" || repeat.origin === "endless loop");
  if (!isLimited && !isRepeated && !(slot.kind === "module" && hasFixedKeys(growth, file))) {
    return;
  }
  const when = repeat?.text ?? `in each call of ${code(use.scope.functionAround?.name ?? "")}`;
  yield {
    node: use.at,
    message: `the lists in ${code(slot.name)} only grow${isLimited ? "; its limit counts keys, not what is in them" : `: ${when} one gains an item, and nothing removes any`}`,
  };
}

/** `{"ok": [], "failed": []}`, `{host: [] for host in HOSTS}`. */
function hasFixedKeys({ slot }: Growth, file: FileFacts): boolean {
  return file.slots
    .writesOf(slot)
    .some(
      ({ value }) =>
        value !== null &&
        /^dictionary/.test(value.kind) &&
        /:\s*(?:\[\]|set\(\)|list\(\)|deque\(\))/.test(value.text),
    );
}
