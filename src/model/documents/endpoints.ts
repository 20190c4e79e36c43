/**
 * The endpoint that an allocation served, from its stack alone: the program's first function that a framework's
 * dispatcher called, such as a FastAPI route, a Django view or a Celery task. The program need not name its endpoints.
 *
 *   root  run_app aiohttp/web.py                 the server
 *         ...
 *         _handle aiohttp/web_app.py             the dispatcher
 *         ...                                    wrappers, which are installed packages
 *         show_cart /srv/shop/cart.py            the endpoint: own code
 *   leaf  rows_of /srv/shop/database.py
 */
import { itemAt, uint8At, uint32At } from "../base/columns.js";
import type { FrameId } from "../base/units.js";
import { FrameKind, type ProfileTables } from "../profile/profile.js";
import { isOwnPath } from "./own_code.js";

/** `function`: its last name; before Python 3.11 frames carry no other. The dispatcher nearest to the leaf counts. */
interface Dispatcher {
  readonly framework: string;
  readonly file: string;
  readonly function: RegExp;
}

const dispatcher = (framework: string, file: string, name: RegExp): Dispatcher => ({
  framework,
  file,
  function: name,
});

const DISPATCHERS: readonly Dispatcher[] = [
  dispatcher("FastAPI", "fastapi/routing.py", /^run_endpoint_function$/),
  dispatcher("Starlette", "starlette/routing.py", /^app$/),
  dispatcher("Starlette", "starlette/endpoints.py", /^dispatch$/),
  // Synchronous routes of both run in its worker threads.
  dispatcher("AnyIO", "anyio/_backends/_asyncio.py", /^run$/),
  dispatcher("Flask", "flask/app.py", /^dispatch_request$/),
  dispatcher("Django", "django/core/handlers/base.py", /^_get_response(_async)?$/),
  dispatcher("Django", "asgiref/sync.py", /^thread_handler$/),
  dispatcher("Tornado", "tornado/web.py", /^_execute$/),
  dispatcher("aiohttp", "aiohttp/web_app.py", /^_handle$/),
  dispatcher("aiohttp", "aiohttp/web_protocol.py", /^_handle_request$/),
  dispatcher("Celery", "celery/app/trace.py", /^(trace_task|__protected_call__)$/),
  dispatcher("gRPC", "grpc/_server.py", /^_call_behavior$/),
  dispatcher("RQ", "rq/job.py", /^(_execute|perform)$/),
  dispatcher("Dramatiq", "dramatiq/actor.py", /^__call__$/),
  dispatcher("Huey", "huey/api.py", /^_execute$/),
  dispatcher("Ray", "ray/_private/function_manager.py", /^actor_method_executor$/),
  dispatcher("Ray", "ray/_private/worker.py", /^main_loop$/),
];

export interface Endpoint {
  /** Of its function. */
  readonly function: string;
  readonly file: string;
  /** Whose dispatcher called it. */
  readonly framework: string;
}

/** The endpoint of each stack of the tables, by its row; null where no dispatcher called the program's code. */
export function endpointsOf(tables: ProfileTables): (Endpoint | null)[] {
  const { stacks } = tables;
  const frames = Array.from({ length: tables.frames.length }, (_, frame) => roleOf(tables, frame));
  const endpoints: (Endpoint | null)[] = new Array(stacks.length).fill(null);
  /** Below a dispatcher, until its endpoint follows. */
  const callers: (Dispatcher | null)[] = new Array(stacks.length).fill(null);
  for (let stack = 1; stack < stacks.length; stack++) {
    const parent = uint32At(stacks.parent, stack);
    const frame = itemAt(frames, uint32At(stacks.frame, stack));
    const caller = frame.dispatcher ?? callers[parent] ?? null;
    const found = endpoints[parent] ?? null;
    if (found !== null) {
      endpoints[stack] = found;
    } else if (caller !== null && frame.own !== null) {
      endpoints[stack] = { ...frame.own, framework: caller.framework };
    } else {
      callers[stack] = caller;
    }
  }
  return endpoints;
}

interface FrameRole {
  readonly dispatcher: Dispatcher | null;
  /** Of the program's own code. */
  readonly own: { readonly function: string; readonly file: string } | null;
}

function roleOf({ frames, strings }: ProfileTables, frame: FrameId): FrameRole {
  if (uint8At(frames.kind, frame) !== FrameKind.python) {
    return { dispatcher: null, own: null };
  }
  const file = itemAt(strings, uint32At(frames.file, frame));
  const name = itemAt(strings, uint32At(frames.function, frame));
  const last = name.slice(name.lastIndexOf(".") + 1);
  const found =
    DISPATCHERS.find((each) => file.endsWith(`/${each.file}`) && each.function.test(last)) ?? null;
  // A module that a request imports is no endpoint.
  const isEndpoint = found === null && last !== "<module>" && isOwnPath(file, name);
  return { dispatcher: found, own: isEndpoint ? { function: name, file } : null };
}

/** As addresses and queries write it: "show_cart /srv/shop/cart.py". */
export function endpointText({ function: name, file }: Endpoint): string {
  return `${name} ${file}`;
}
