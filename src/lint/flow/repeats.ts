/** Which code runs again and again: loops, handlers of requests and messages, and what these call. */

import type { Call, Module } from "../scopes/module.js";
import type { Names } from "../scopes/names.js";
import type { Scope } from "../scopes/scope.js";
import {
  argumentsOf,
  bare,
  integerValue,
  isInside,
  opensScope,
  positionals,
} from "../syntax/expressions.js";
import type { SyntaxNode } from "../syntax/tree.js";

/** How code comes to run again; the text of a message: "each time `f` handles a request". */
export interface Repeat {
  readonly kind: "loop" | "endless loop" | "handler" | "called";
  /** For a called function: why what calls it runs again. */
  readonly origin: "loop" | "endless loop" | "handler";
  /** The loop or the function. */
  readonly node: SyntaxNode;
  /** "in a loop", "for each request", "for each call of `load`". */
  readonly text: string;
}

const ROUTE_DECORATORS =
  /\.(?:get|post|put|patch|delete|head|options|websocket|middleware|task|event|on|on_event|tool|listen|listener|agent|timer|job|consumer|endpoint|mutation|handler)$|(?:^|\.)(?:route|websocket_route|api_route|before_request|after_request|teardown_request|exception_handler|errorhandler|shared_task|periodic_task|actor|subscriber|on_message|message_handler|callback_query_handler|api_view|csrf_exempt|require_http_methods|require_GET|require_POST|login_required|view_config|receiver|http_trigger|queue_trigger|cloud_event)$|\b(?:bot|client|tree)\.command$/;
/** Modules whose decorators are imported by their bare names. */
const ROUTERS =
  /^(?:litestar|starlite|bottle|blacksheep|robyn|prefect|huey|taskiq|locust|aiogram)\b/;
const LIFECYCLE = /startup|shutdown|lifespan|ready|"init"|'init'/;
const NO_HANDLERS =
  /(?:^|\.)(?:fixture|group|click\.\w+|typer\.\w+|cli\.\w+|pytest\.\S+|validator)$/;
const VIEW_BASES =
  /(?:View|ViewSet|Handler|Resource|Endpoint|MethodView|Servicer|Middleware|Consumer|Listener|Protocol|HTTPEndpoint|RequestHandler|Cog)$/;
const VIEW_METHODS =
  /^(?:get|post|put|patch|delete|head|options|dispatch|handle|list|retrieve|create|update|destroy|receive|receive_json|prepare|do_[A-Z]+|on_\w+|data_received|connection_made|datagram_received|process_request|process_response|process_message|__call__|call)$/;
const HANDLER_NAMES =
  /^(?:_?(?:async_)?handle(?:_(?:request|message|event|client|connection|query|call|job|command|packet|webhook|msg|upload|chat))?|on_(?:message|request|event|data|tick|update|connect|connection|packet|receive|trade|quote|query|job)|process_(?:request|message|event|job|query|payload|batch_request|webhook|frame|tick)|lambda_handler|do_(?:GET|POST|PUT|DELETE|PATCH|HEAD)|webhook|serve_request|dispatch_request|consume_message|handler)$/;
const REQUEST_TYPES =
  /(?:^|[.[\s|"'])(?:Request|HttpRequest|HTTPConnection|WebSocket|HTTPServerRequest|ServicerContext|IncomingMessage|WSGIRequest|WebSocketServerProtocol|StreamReader)\b/;

/** These run a function that they are given. */
const STARTERS =
  /^(?:submit|Thread|Process|Timer|run_in_executor|to_thread|run_in_threadpool|run_sync|apply_async|call_later|call_soon|call_soon_threadsafe|call_at|start_soon|start_new_thread|spawn|spawn_later|add_task|imap|imap_unordered|ensure_future)$/;

/** These call a function that they are given for each message, request or tick. */
const SUBSCRIPTIONS = (
  "subscribe psubscribe basic_consume consume add_job add_url_rule add_api_route add_api_websocket_route " +
  "add_event_handler add_message_handler add_periodic_task message_callback_add add_get add_post add_put add_delete " +
  "start_server create_server serve_forever websocket_serve set_message_handler"
).split(" ");

/** Called as one of these, a function runs once for the program. */
const ONCE =
  /^_?(?:main|setup|set_up|startup|on_startup|lifespan|create_app|make_app|build_app|bootstrap|configure\w*|init\w*|load_config\w*|register\w*|install\w*|run_server|cli|entrypoint|conftest|setUp\w*|tearDown\w*|setUpClass|asyncSetUp)$/;

/** A function that is called by repeated code runs again; such calls are followed so far. */
const LONGEST_CALL_CHAIN = 3;

export class Repeats {
  readonly #ofFunction = new Map<Scope, Repeat | null>();
  #callers: Map<Scope, { node: SyntaxNode; scope: Scope }[]> | null = null;
  #subscribed: Set<Scope> | null = null;

  constructor(
    readonly module: Module,
    readonly names: Names,
  ) {}

  /** Why this code runs again and again; null where nothing shows that it does. */
  of(node: SyntaxNode): Repeat | null {
    const scope = this.module.scopeOf(node);
    const loop = this.loopAround(node);
    const endless = this.#endlessLoopAround(node, loop);
    if (endless !== null) {
      return { kind: "endless loop", origin: "endless loop", node: endless, text: "in a loop" };
    }
    const around = scope.functionAround;
    const whole = around === null ? null : this.ofFunction(around);
    // A loop over a few things runs again where its function does.
    return loop === null || (whole !== null && whole.origin !== "loop")
      ? whole
      : { kind: "loop", origin: "loop", node: loop, text: "in a loop" };
  }

  /** The innermost endless loop of the same function, from `loop` outwards. */
  #endlessLoopAround(node: SyntaxNode, loop: SyntaxNode | null): SyntaxNode | null {
    let inner = node;
    let outer = loop;
    while (outer !== null && !isEndless(outer)) {
      inner = outer;
      outer = this.loopAround(inner);
    }
    return outer;
  }

  /** Why a function runs again and again: it handles requests, or repeated code calls it. */
  ofFunction(scope: Scope, depth = 0): Repeat | null {
    const known = this.#ofFunction.get(scope);
    if (known !== undefined) {
      return known;
    }
    this.#ofFunction.set(scope, null); // recursion
    const repeat = this.#ofFunctionAnew(scope, depth);
    if (depth === 0 || repeat !== null) {
      this.#ofFunction.set(scope, repeat);
    } else {
      this.#ofFunction.delete(scope);
    }
    return repeat;
  }

  /** The innermost loop of the same function whose body runs this node more than a few times. */
  loopAround(node: SyntaxNode): SyntaxNode | null {
    let child = node;
    for (let outer = node.parent; outer !== null; outer = outer.parent) {
      if (this.module.scopeOpenedBy(outer) !== undefined) {
        return null;
      }
      if (isLoopOf(outer, child) && !isShort(outer) && !leavesAfter(node, outer)) {
        return outer;
      }
      child = outer;
    }
    return null;
  }

  /** Whether a function handles requests, messages or calls of a framework. */
  handles(scope: Scope): boolean {
    if (scope.kind !== "function") {
      return false;
    }
    if (this.#hasRouteDecorator(scope) || this.#isViewMethod(scope)) {
      return true;
    }
    return !this.#isCommand(scope) && (isHandlerByShape(scope) || this.#isSubscribed(scope));
  }

  #ofFunctionAnew(scope: Scope, depth: number): Repeat | null {
    if (this.handles(scope)) {
      return {
        kind: "handler",
        origin: "handler",
        node: scope.node,
        text: `in each call of the handler \`${scope.name}\``,
      };
    }
    if (scope.kind === "lambda" || depth >= LONGEST_CALL_CHAIN || ONCE.test(scope.name)) {
      return null;
    }
    let found: Repeat | null = null;
    for (const { node, scope: caller } of this.callersOf(scope)) {
      const repeat = caller === scope ? null : this.#ofCall(node, caller, scope, depth);
      if (repeat !== null && (found === null || found.origin === "loop")) {
        found = repeat;
      }
    }
    return found;
  }

  #ofCall(node: SyntaxNode, caller: Scope, called: Scope, depth: number): Repeat | null {
    const loop = this.loopAround(node);
    const text = `in each call of \`${called.name}\``;
    const around = caller.functionAround;
    const outer = around === null ? null : this.ofFunction(around, depth + 1);
    if (outer !== null && outer.origin !== "loop") {
      return { kind: "called", origin: outer.origin, node: called.node, text };
    }
    const origin = this.#endlessLoopAround(node, loop) === null ? "loop" : "endless loop";
    if (loop !== null && (origin === "endless loop" || !isAtImport(caller))) {
      return { kind: "called", origin, node: called.node, text: `${text}, which a loop calls` };
    }
    return outer === null
      ? null
      : { kind: "called", origin: outer.origin, node: called.node, text };
  }

  /** Where this file calls a function, or starts it in a thread, a task or a process. */
  callersOf(scope: Scope): readonly { node: SyntaxNode; scope: Scope }[] {
    if (this.#callers === null) {
      const callers = new Map<Scope, { node: SyntaxNode; scope: Scope }[]>();
      const add = (called: Scope | null, { node, scope: from }: Call) => {
        if (called !== null) {
          callers.set(called, [...(callers.get(called) ?? []), { node, scope: from }]);
        }
      };
      for (const name of this.module.calledNames) {
        for (const call of this.module.callsOf(name)) {
          add(this.#calledBy(call.callee), call);
          for (const argument of STARTERS.test(name) ? argumentsOf(call.node) : []) {
            add(this.names.functionNamed(argument), call);
          }
        }
      }
      this.#callers = callers;
    }
    return this.#callers.get(scope) ?? [];
  }

  /** Whether this file calls a function, and only while it is imported: a table is filled, line by line. */
  isOnlyCalledAtImport(scope: Scope): boolean {
    const callers = this.callersOf(scope);
    return (
      callers.length > 0 &&
      callers.every(
        ({ node, scope: caller }) =>
          isAtImport(caller) && this.#endlessLoopAround(node, this.loopAround(node)) === null,
      )
    );
  }

  /** Functions that are handed to a broker, a router or a scheduler, which calls them for each message. */
  #isSubscribed(scope: Scope): boolean {
    if (this.#subscribed === null) {
      this.#subscribed = new Set();
      for (const call of this.module.callsOf(...SUBSCRIPTIONS)) {
        for (const argument of argumentsOf(call.node)) {
          const called = this.names.functionNamed(argument);
          if (called !== null) {
            this.#subscribed.add(called);
          }
        }
      }
    }
    return this.#subscribed.has(scope);
  }

  /** The function that runs: for a class, its `__init__`. */
  #calledBy(callee: SyntaxNode): Scope | null {
    const called = this.names.functionNamed(callee);
    if (called !== null || callee.kind !== "identifier") {
      return called;
    }
    const made = this.names.classNamed(callee);
    return made === null ? null : this.names.methodOf(made, "__init__");
  }

  #hasRouteDecorator(scope: Scope): boolean {
    return scope.decorators.some((decorator) => {
      const callee =
        decorator.kind === "call" ? (decorator.child("function") ?? decorator) : decorator;
      const full = this.names.resolve(callee) ?? "";
      const text = ROUTERS.test(full) ? full : callee.text.replaceAll(/\s/g, "");
      if (!ROUTE_DECORATORS.test(text) || NO_HANDLERS.test(text)) {
        return false;
      }
      return !LIFECYCLE.test(decorator.text);
    });
  }

  /** `handle` of a command for the terminal, which ends with it. */
  #isCommand({ methodOf: owner, name }: Scope): boolean {
    return (
      owner !== null &&
      /^(?:handle|run|execute)/.test(name) &&
      [owner.name, ...this.names.baseNames(owner)].some((each) => /Command$/.test(each))
    );
  }

  #isViewMethod(scope: Scope): boolean {
    const owner = scope.methodOf;
    if (owner === null || !VIEW_METHODS.test(scope.name)) {
      return false;
    }
    return (
      this.names.baseNames(owner).some((base) => VIEW_BASES.test(base)) ||
      (scope.name === "__call__" && isApplicationCall(scope))
    );
  }
}

/** `(scope, receive, send)` of ASGI, `(environ, start_response)` of WSGI, `(request)` of Django's middleware. */
function isApplicationCall(scope: Scope): boolean {
  const names = scope.parameters.slice(1).map(({ name }) => name);
  return /^(?:scope,receive,send|environ,start_response|request)$/.test(names.join(","));
}

function isHandlerByShape(scope: Scope): boolean {
  const own = scope.methodOf === null ? scope.parameters : scope.parameters.slice(1);
  if (HANDLER_NAMES.test(scope.name) && own.length > 0) {
    return true;
  }
  if (/^__|^test/.test(scope.name)) {
    return false;
  }
  const names = own.map(({ name }) => name);
  return (
    own.some(({ annotation }) => REQUEST_TYPES.test(annotation)) ||
    names[0] === "request" ||
    (names[0] === "req" && names.length <= 3) ||
    (names[0] === "environ" && names[1] === "start_response") ||
    (names[0] === "scope" && names[1] === "receive") ||
    (names[0] === "event" && names[1] === "context")
  );
}

function isAtImport(scope: Scope): boolean {
  return scope.kind === "module" || scope.kind === "class";
}

const COMPREHENSIONS = /^(?:list|set|dictionary)_comprehension$|^generator_expression$/;

/** Whether `outer` runs `child` once for each round. */
function isLoopOf(outer: SyntaxNode, child: SyntaxNode): boolean {
  switch (outer.kind) {
    case "for_statement":
      return child.field === "body";
    case "while_statement":
      return child.field === "body" || child.field === "condition";
    default:
      return COMPREHENSIONS.test(outer.kind) && child.field === "body";
  }
}

const FEW_ROUNDS = 16;

/** A loop over a literal, or a small range: its rounds are counted. */
function isShort(loop: SyntaxNode): boolean {
  const clause = COMPREHENSIONS.test(loop.kind)
    ? loop.children.find(({ kind }) => kind === "for_in_clause")
    : loop;
  const right = clause?.child("right");
  if (right === null || right === undefined) {
    return false;
  }
  const iterable = bare(right);
  if (/^(?:tuple|list|set|dictionary|string)$/.test(iterable.kind)) {
    return !iterable.children.some(({ kind }) => kind === "list_splat");
  }
  if (iterable.kind === "call" && iterable.child("function")?.text === "range") {
    const numbers = positionals(iterable).map(integerValue);
    const [first, last = first] = numbers;
    return typeof last === "number" && last <= FEW_ROUNDS;
  }
  return false;
}

/**
 * A loop that a program stays in: `while True`, `while self.running` or a loop over a subscription. One that a break, a
 * return or a yield leaves is one only if it waits for something: parsers loop until their input ends.
 */
export function isEndless(loop: SyntaxNode): boolean {
  const body = loop.child("body");
  if (body === null) {
    return false;
  }
  if (loop.kind === "while_statement") {
    const condition = loop.child("condition")?.text.trim() ?? "";
    const isForever = /^(?:True|1)$/.test(condition);
    return (
      (isForever || RUNNING.test(condition)) &&
      (WAITING.test(body.text) || (isForever && !isLeft(body, true) && !isCaught(loop)))
    );
  }
  const right = loop.child("right")?.text ?? "";
  const item = loop.child("left")?.text ?? "";
  return loop.children.some(({ kind }) => kind === "async")
    ? STREAMS.test(right) || (FEEDS.test(right) && MESSAGES.test(item))
    : ITERATORS.test(right) || (FEEDING_CALLS.test(right) && MESSAGES.test(item));
}

/** A `for` over these goes on for ever. */
const ITERATORS =
  /^(?:itertools\.count|count)\(|^iter\(\s*[\w.]*(?:queue|conn|sock)|(?:\.listen|\.subscribe|\.consume|consumer)(?:\(.*\))?$/is;
/** It does over these if what they give is a message. */
const FEEDING_CALLS = /(?:^|\.)(?:watch|stream|listen|subscribe|consume|tail|follow)\w*\(.*\)$/s;
const RUNNING =
  /^(?:not\s+[\w.]*(?:stop|shutdown|clos|exit|quit|cancel|done|finish)[\w.]*(?:\(\))?|[\w.]*(?:running|alive|active|is_open|started|connected)(?:\(\))?)$/i;
/** Waiting for work or time. */
const WAITING =
  /\.(?:recv|recvfrom|accept|poll|consume|listen|receive|receive_text|receive_json|recv_json|brpop|blpop|xread|get_message|read_message)\(|(?:[\w.]*(?:queue|inbox|jobs|tasks|mailbox|channel)|\b_?q)\.get\(|\bsleep\(|\.wait\(|\bselect\(/i;
/** An `async for` over these goes on as long as the connection does. */
const STREAMS =
  /(?:consumer|subscri\w*|\blisten\w*|pubsub|websocket|\bws|ws_conn\w*|\bsocket|messages|notifications|watch|events)(?:\.\w+)?(?:\(.*\))?$|(?:channel|connection|client)(?:\.(?:listen|messages|notifications|events|iter|stream|receive|recv|subscribe|incoming|consume|watch)\w*)?(?:\(.*\))?$/is;
/** These do if what they give is a message, not a part of one answer. */
const FEEDS =
  /(?:broker|bus|queue|queue_iter|topic|feed|exchange|redis|nats|nc|kafka|mqtt|amqp|inbox|source|reader|conn|session)(?:\.\w+)?(?:\(.*\))?$|\.?(?:stream|tail|poll|incoming|requests)(?:\(.*\))?$/is;
const MESSAGES =
  /^(?:_?m|\w*msg|\w*message|\w*event|evt|ev|\w*record|rec|\w*job|\w*update|tick|trade|quote|\w*order|envelope|packet|delivery|notification|req|\w*request|payload|reading)$/i;

/** `try: while True: ... except StopIteration:`, or `queue.Empty`: the end of the input leaves the loop. */
function isCaught(loop: SyntaxNode): boolean {
  for (let outer = loop.parent; outer !== null && !opensScope(outer); outer = outer.parent) {
    if (
      outer.kind === "try_statement" &&
      /except\s*\(?[^:]*(?:StopIteration|EOFError|IndexError|Empty|EndOf\w*)/.test(outer.text)
    ) {
      return true;
    }
  }
  return false;
}

/** Whether a `break`, a `return` or an exception in the body ends a loop. */
export function canEnd(loop: SyntaxNode): boolean {
  const body = loop.child("body");
  return body !== null && isLeft(body, true);
}

/** Whether a `break` of this loop, a `return`, a `raise` or a `yield` is in its body. */
function isLeft(node: SyntaxNode, ofLoop: boolean): boolean {
  return node.children.some((child) => {
    if (opensScope(child)) {
      return false;
    }
    const isExit =
      /^(?:return_statement|yield|raise_statement)$/.test(child.kind) ||
      (child.kind === "break_statement" && ofLoop);
    const isLoop = child.kind === "for_statement" || child.kind === "while_statement";
    if (!isExit && isLoop) {
      // A `break` in the `else` of an inner loop leaves the outer one.
      return child.children.some((part) => isLeft(part, ofLoop && part.kind === "else_clause"));
    }
    return isExit || isLeft(child, ofLoop);
  });
}

/** Whether control leaves the loop after the statement with the node, so that it runs once: `try: x = f(); break`. */
function leavesAfter(node: SyntaxNode, loop: SyntaxNode): boolean {
  let child = node;
  for (let outer = node.parent; outer !== null && outer !== loop.parent; outer = outer.parent) {
    if (child.kind === "return_statement") {
      return true;
    }
    if (outer.kind === "block") {
      const after = outer.children.slice(outer.children.indexOf(child) + 1);
      if (after.some(({ kind }) => /^(?:return|break|raise)_statement$/.test(kind))) {
        return true;
      }
    }
    if (outer.kind === "try_statement" && child.field === "body") {
      // `try: ... except: ... else: break`
      const last = outer.children.find(({ kind }) => kind === "else_clause");
      if (last !== undefined && /(?:^|\n)\s*(?:break|return\b[^\n]*)\s*$/.test(last.text)) {
        return true;
      }
    }
    child = outer;
  }
  return !isInside(node, loop);
}
