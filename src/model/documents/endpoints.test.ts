import { expect, test } from "vitest";
import { profileOf } from "../profile/profile.fixture.js";
import { endpointsOf, endpointText } from "./endpoints.js";

const LIB = "/venv/lib/python3.12/site-packages";

/** The endpoint of a stack, root first. */
function endpointOf(...frames: string[]): string | null {
  const words = frames.map((frame) => frame.replace(/ (\S+)$/, "@$1:7"));
  const profile = profileOf(`${words.join(";")} 100`);
  const endpoint = endpointsOf(profile)[profile.sites.stack[0] ?? 0] ?? null;
  return endpoint && `${endpoint.framework}: ${endpointText(endpoint)}`;
}

test.each([
  ["FastAPI", `run_endpoint_function ${LIB}/fastapi/routing.py`],
  ["AnyIO", `WorkerThread.run ${LIB}/anyio/_backends/_asyncio.py`],
  ["Flask", `Flask.dispatch_request ${LIB}/flask/app.py`],
  ["Django", `BaseHandler._get_response ${LIB}/django/core/handlers/base.py`],
  ["Tornado", `RequestHandler._execute ${LIB}/tornado/web.py`],
  ["Celery", `build_tracer.<locals>.trace_task ${LIB}/celery/app/trace.py`],
])("of %s", (framework, dispatcher) => {
  expect(
    endpointOf(
      "<module> /srv/main.py",
      dispatcher,
      `wrapper ${LIB}/rest_framework/views.py`,
      "Cart.show /srv/cart.py",
      "rows_of /srv/database.py",
      `read ${LIB}/psycopg/cursor.py`,
    ),
  ).toBe(`${framework}: Cart.show /srv/cart.py`);
});

test("of the dispatcher nearest to the leaf, above which the program's middleware is no endpoint", () => {
  const stack = [
    `_handle_request ${LIB}/aiohttp/web_protocol.py`,
    "add_header /srv/middleware.py",
    "Cart.show /srv/cart.py",
  ];
  expect(endpointOf(...stack)).toBe("aiohttp: add_header /srv/middleware.py");
  expect(
    endpointOf(
      `__call__ ${LIB}/starlette/middleware/base.py`,
      "add_header /srv/middleware.py",
      `request_response.<locals>.app.<locals>.app ${LIB}/starlette/routing.py`,
      `run_endpoint_function ${LIB}/fastapi/routing.py`,
      "show /srv/cart.py",
    ),
  ).toBe("FastAPI: show /srv/cart.py");
});

test("none without a dispatcher, or without code of the program below it", () => {
  expect(endpointOf("<module> /srv/main.py", "load /srv/main.py")).toBeNull();
  expect(endpointOf("dispatch_request /srv/app.py", "load /srv/main.py")).toBeNull();
  expect(
    endpointOf(`_get_response ${LIB}/django/core/handlers/base.py`, `a ${LIB}/django/x.py`),
  ).toBeNull();
  expect(
    endpointOf(`dispatch_request ${LIB}/flask/app.py`, "<module> /srv/imported_late.py"),
  ).toBeNull();
});
