/** Code that runs repeatedly: loops, handlers of requests and messages, and the functions that these call. */

import type { Call, Module } from "../scopes/module.js";
import type { Names } from "../scopes/names.js";
import type { Scope } from "../scopes/scope.js";
import { argumentsOf } from "../syntax/expressions.js";
import type { SyntaxNode } from "../syntax/tree.js";
import { isEndless, isLoopOf, isShort, leavesAfter } from "./loops.js";

/** The reason why code runs repeatedly, as the text of a message: "each time `f` handles a request". */
export interface Repeat {
  readonly kind: "loop" | "endless loop" | "handler" | "called";
  /** For a called function: why its caller runs repeatedly. */
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

/** These run a function that is passed to them. */
const STARTERS =
  /^(?:submit|Thread|Process|Timer|run_in_executor|to_thread|run_in_threadpool|run_sync|apply_async|call_later|call_soon|call_soon_threadsafe|call_at|start_soon|start_new_thread|spawn|spawn_later|add_task|imap|imap_unordered|ensure_future)$/;

/** These call a function that is passed to them for each message, request or tick. */
const SUBSCRIPTIONS = (
  "subscribe psubscribe basic_consume consume add_job add_url_rule add_api_route add_api_websocket_route " +
  "add_event_handler add_message_handler add_periodic_task message_callback_add add_get add_post add_put add_delete " +
  "start_server create_server serve_forever websocket_serve set_message_handler"
).split(" ");

/** Called as one of these, a function runs once for the program. */
const ONCE =
  /^_?(?:main|setup|set_up|startup|on_startup|lifespan|create_app|make_app|build_app|bootstrap|configure\w*|init\w*|load_config\w*|register\w*|install\w*|run_server|cli|entrypoint|conftest|setUp\w*|tearDown\w*|setUpClass|asyncSetUp)$/;

/** A function that repeated code calls runs repeatedly; longest chain of such calls that is followed. */
const LONGEST_CALL_CHAIN = 3;

export class Repeats {
  readonly #ofFunction = new Map<Scope, Repeat | null>();
  #callers: Map<Scope, { node: SyntaxNode; scope: Scope }[]> | null = null;
  #subscribed: Set<Scope> | null = null;

  constructor(
    readonly module: Module,
    readonly names: Names,
  ) {}

  /** Why this code runs repeatedly; null if nothing shows that it does. */
  of(node: SyntaxNode): Repeat | null {
    const scope = this.module.scopeOf(node);
    const loop = this.loopAround(node);
    const endless = this.#endlessLoopAround(node, loop);
    if (endless !== null) {
      return { kind: "endless loop", origin: "endless loop", node: endless, text: "in a loop" };
    }
    const around = scope.functionAround;
    const whole = around === null ? null : this.ofFunction(around);
    // A loop with few iterations runs repeatedly only if its function does.
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

  /** Why a function runs repeatedly: it handles requests, or repeated code calls it. */
  ofFunction(scope: Scope, depth = 0): Repeat | null {
    const known = this.#ofFunction.get(scope);
    if (known !== undefined) {
      return known;
    }
    this.#ofFunction.set(scope, null); // recursion
    const repeat = this.#computeForFunction(scope, depth);
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

  #computeForFunction(scope: Scope, depth: number): Repeat | null {
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

  /** Whether this file calls a function, but only during import, as code that fills a table line by line does. */
  isOnlyCalledAtImport(scope: Scope, depth = 0): boolean {
    const callers = this.callersOf(scope);
    return (
      callers.length > 0 &&
      depth < LONGEST_CALL_CHAIN &&
      callers.every(({ node, scope: caller }) =>
        isAtImport(caller)
          ? this.#endlessLoopAround(node, this.loopAround(node)) === null
          : caller.functionAround !== null &&
            caller.functionAround !== scope &&
            this.loopAround(node) === null &&
            this.isOnlyCalledAtImport(caller.functionAround, depth + 1),
      )
    );
  }

  /** Functions that are passed to a broker, a router or a scheduler, which calls them for each message. */
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

  /** `handle` of a terminal command, whose process ends with it. */
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
    own.some(
      ({ annotation }) => REQUEST_TYPES.test(annotation) && !/Callable|[Tt]ype\[/.test(annotation),
    ) ||
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
