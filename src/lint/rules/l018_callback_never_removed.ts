import type { FileFacts } from "../flow/file_facts.js";
import type { Call } from "../scopes/module.js";
import { argumentsOf, bare, mentions } from "../syntax/expressions.js";
import type { SyntaxNode } from "../syntax/tree.js";
import { code } from "./growing.js";
import type { Rule } from "./rule.js";

export const callbackNeverRemoved: Rule = {
  id: "TM-L018",
  name: "callback-never-removed",
  severity: "error",
  finds:
    "A callback registered for each call, request or object with something that lives longer (an event bus, `atexit`, `signal`, a shared future), and never removed.",
  why: "The registry keeps the callback, and the callback keeps its object or the variables that it captures.",
  speed: "One callback with its object for each call.",
  before: `
import atexit

class Connection:
    def __init__(self, address):
        self.buffer = bytearray(1 << 20)
        atexit.register(self.close)

@app.get("/query")
def query():
    return Connection("db").read()
`,
  after: `
import atexit

class Connection:
    def __init__(self, address):
        self.buffer = bytearray(1 << 20)
        atexit.register(self.close)

    def close(self):
        atexit.unregister(self.close)

@app.get("/query")
def query():
    return Connection("db").read()
`,
  ignore: "The registry lives no longer than the object, or there are few objects.",
  proof: "`tidemark heap PID --to Connection` shows the registry at the start of the path.",
  *check(file) {
    for (const [name, removals] of Object.entries(REGISTRATIONS)) {
      for (const call of file.module.callsOf(name)) {
        const callback = callbackOf(call, file);
        if (
          callback !== null &&
          file.module.callsOf(...removals).length === 0 &&
          isLasting(call, callback, file)
        ) {
          const repeat = file.repeats.of(call.node);
          yield {
            node: call.node,
            severity: repeat === null ? "warning" : "error",
            message: `${code(call.callee.text)} keeps ${code(callback.text.slice(0, 60))} ${repeat?.text ?? `of each ${code(call.scope.methodAround?.methodOf?.name ?? "object")}`}, and nothing removes it`,
          };
        }
      }
    }
  },
};

/** Methods that register a callback, and those that remove it. */
const REGISTRATIONS: Record<string, string[]> = {
  register: ["unregister", "deregister"],
  subscribe: ["unsubscribe", "dispose", "unlisten", "cancel"],
  add_listener: ["remove_listener", "off", "removeListener"],
  addListener: ["removeListener"],
  add_callback: ["remove_callback"],
  add_handler: ["remove_handler"],
  add_observer: ["remove_observer"],
  attach: ["detach"],
  connect: ["disconnect"],
  on: ["off", "remove_listener", "remove_all_listeners"],
  listen: ["remove", "unlisten"],
  add_signal_handler: ["remove_signal_handler"],
  add_event_handler: ["remove_event_handler"],
  add_event_listener: ["remove_event_listener"],
  register_callback: ["unregister_callback"],
  register_handler: ["unregister_handler"],
  register_listener: ["unregister_listener"],
  add_subscriber: ["remove_subscriber"],
  observe: ["unobserve"],
  bind: ["unbind"],
  add_hook: ["remove_hook"],
};

/** The argument that is a callback: a method, a lambda, an inner function. */
function callbackOf(call: Call, file: FileFacts): SyntaxNode | null {
  for (const argument of argumentsOf(call.node)) {
    const node = bare(argument);
    const [first] =
      node.kind === "call" && /(?:^|\.)partial$/.test(node.child("function")?.text ?? "")
        ? argumentsOf(node)
        : [];
    if (
      node.kind === "lambda" ||
      first !== undefined ||
      isBoundMethod(node, file) ||
      isInnerFunction(node, file)
    ) {
      return node;
    }
  }
  return null;
}

/** `self.NAME`, unless the class assigns it a value that is not a method. */
function isBoundMethod(node: SyntaxNode, { names, slots }: FileFacts): boolean {
  const object = node.kind === "attribute" ? node.child("object") : null;
  if (object === null || object.text !== "self") {
    return false;
  }
  const owner = names.selfClass(object);
  const name = node.child("attribute")?.text ?? "";
  return (
    owner === null || names.methodOf(owner, name) !== null || !slots.attributesOf(owner).has(name)
  );
}

function isInnerFunction(node: SyntaxNode, { names }: FileFacts): boolean {
  const scope = node.kind === "identifier" ? names.functionNamed(node) : null;
  return scope?.parent?.functionAround != null;
}

/** Whether the registry outlives the objects that the callback refers to. */
function isLasting(call: Call, callback: SyntaxNode, file: FileFacts): boolean {
  const around = call.scope.functionAround;
  if (around === null || call.receiver === null || isWeak(call) || isOnce(call.node)) {
    return false;
  }
  const receiver = call.receiver;
  const resolved = file.names.resolve(receiver) ?? "";
  if (
    call.name === "register" &&
    resolved !== "atexit" &&
    !/bus|event|hook|signal|callback|listener|registry|dispatcher/i.test(receiver.text)
  ) {
    return false;
  }
  if (
    (call.name === "bind" ||
      call.name === "on" ||
      call.name === "connect" ||
      call.name === "attach") &&
    isOwn(receiver)
  ) {
    return false;
  }
  // An object that a module keeps, or a parameter from outside.
  const root = file.slots.of(receiver);
  const isShared =
    resolved === "atexit" ||
    root?.kind === "module" ||
    root?.kind === "path" ||
    isImported(receiver, file) ||
    isGiven(receiver, around);
  const repeat = file.repeats.of(call.node);
  if (
    repeat !== null &&
    (repeat.kind === "handler" || repeat.kind === "called" || repeat.kind === "endless loop")
  ) {
    return isShared;
  }
  const isInit = around.name === "__init__" || around.name === "__post_init__";
  return (
    isInit &&
    (resolved === "atexit" || root?.kind === "module" || isImported(receiver, file)) &&
    isBoundOrSelf(callback) &&
    isMadeOften(call, file)
  );
}

/** \`self.button.connect(self.on_click)\`: both belong to the object. */
function isOwn(receiver: SyntaxNode): boolean {
  return /^self\b/.test(receiver.text);
}

function isGiven(
  receiver: SyntaxNode,
  around: { parameters: readonly { name: string }[] },
): boolean {
  return around.parameters.some(
    ({ name }) =>
      name === receiver.text &&
      /bus|emitter|dispatcher|signal|loop|broker|events|hub|registry|publisher|subject/i.test(name),
  );
}

function isImported(receiver: SyntaxNode, file: FileFacts): boolean {
  return (
    file.names.resolve(receiver) !== null &&
    /^[\w.]+$/.test(receiver.text) &&
    !receiver.text.startsWith("self")
  );
}

/** `if not cls._registered: ...` */
function isOnce(node: SyntaxNode): boolean {
  for (let outer = node.parent; outer !== null; outer = outer.parent) {
    if (
      outer.kind === "if_statement" &&
      /^not |is None|not in/.test(outer.child("condition")?.text ?? "")
    ) {
      return true;
    }
  }
  return false;
}

function isWeak(call: Call): boolean {
  return /WeakMethod|weakref|weak=True/.test(call.node.text);
}

function isBoundOrSelf(callback: SyntaxNode): boolean {
  return mentions(callback, "self");
}

/** A class with many objects, according to its name or because repeated code creates them. */
function isMadeOften(call: Call, file: FileFacts): boolean {
  const owner = call.scope.methodAround?.methodOf;
  const init = call.scope.functionAround;
  return (
    owner != null &&
    (/(?:Connection|Session|Request|Job|Handle|Stream|Task|Widget|Window|File|Buffer|Record|Document|User|View|Message|Transaction|Order|Node|Item|Model|Panel|Dialog|Player|Entity|Subscriber|Observer|Component)$/.test(
      owner.name,
    ) ||
      (init !== null && file.repeats.ofFunction(init) !== null))
  );
}
