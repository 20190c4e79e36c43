import type { FileFacts } from "../flow/file_facts.js";
import type { Scope } from "../scopes/scope.js";
import { assignedTo } from "../syntax/expressions.js";
import {
  code,
  gains,
  growingUse,
  isDeclared,
  LONG_LIVED,
  onlyGrows,
  type Suspect,
} from "./growing.js";
import type { Rule } from "./rule.js";

export const instanceContainerGrows: Rule = {
  id: "TM-L003",
  name: "instance-container-grows",
  severity: "error",
  finds:
    "A container of an object that lives as long as the program (a service, a worker, a middleware). Its methods add to the container, and nothing is removed.",
  why: "The object is created once and serves every request, so its entries are never freed.",
  speed: "One entry for each request, message or iteration.",
  before: `
class Worker:
    def __init__(self, queue):
        self.queue = queue
        self.done = []

    def run(self):
        while True:
            job = self.queue.get()
            job.execute()
            self.done.append(job)
`,
  after: `
class Worker:
    def __init__(self, queue):
        self.queue = queue
        self.done = 0

    def run(self):
        while True:
            job = self.queue.get()
            job.execute()
            self.done += 1
`,
  ignore: "The object is created for one task and dropped afterwards.",
  proof: "`tidemark heap PID --retained` shows the object with the growing retained size.",
  *check(file) {
    for (const owner of file.module.classes) {
      const names = attributesOf(owner, file);
      for (const name of names) {
        const slot = file.slots.slot(owner, name);
        const growth = file.containers.of(slot);
        const isOwn = file.slots
          .writesOf(slot)
          .every(
            ({ target, kind }) =>
              target.kind === "attribute" || kind === "augment" || isDeclared(owner, file),
          );
        if (growth === null || !isOwn || !onlyGrows(growth)) {
          continue;
        }
        const suspect = growingUse(growth, file);
        if (suspect !== null && isLongLived(owner, suspect, file)) {
          yield {
            node: suspect.use.at,
            severity: suspect.isRepeated ? "error" : "warning",
            message: `${code(`self.${name}`)} of ${code(owner.name)} ${gains(growth)} ${suspect.when}, and nothing removes any`,
          };
        }
      }
    }
  },
};

/** Attributes that methods set to a container, and those that a dataclass declares. */
function attributesOf(owner: Scope, file: FileFacts): Set<string> {
  const names = file.slots.attributesOf(owner);
  return isDeclared(owner, file) ? new Set([...names, ...owner.writes.keys()]) : names;
}

/** The object is made once: its class handles requests or runs an endless loop, or the module keeps one. */
function isLongLived(owner: Scope, { isRepeated }: Suspect, file: FileFacts): boolean {
  if (isRepeated) {
    return !isPerRequest(owner, file);
  }
  // A cache of keys and values belongs to one generation of a model.
  const isOfModel = owner.name.endsWith("Cache") && file.tensors.usesTorch;
  return (LONG_LIVED.test(owner.name) && !isOfModel) || isMadeOnce(owner, file);
}

/** A variable of the module or the application holds an object of the class. */
function isMadeOnce(owner: Scope, file: FileFacts): boolean {
  return file.module.callsOf(owner.name).some(({ callee, scope, node }) => {
    const target = file.names.classNamed(callee) === owner ? assignedTo(node) : null;
    return target !== null && (scope.kind === "module" || OF_APPLICATION.test(target.text));
  });
}

/** `app.state.index = Index()`, `app["index"] = Index()`. */
const OF_APPLICATION = /^(?:\w+\.)?app(?:\.|\[)/;

/** Frameworks make one object of these for each request. */
function isPerRequest(owner: Scope, file: FileFacts): boolean {
  return file.names
    .baseNames(owner)
    .some((base) =>
      /(?:View|ViewSet|RequestHandler|Resource|HTTPEndpoint|MethodView|StreamRequestHandler|APIView|Protocol)$/.test(
        base,
      ),
    );
}
