/** Endpoints of real frameworks, found at query time in the stacks of a program that names none of them. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, afterEach, beforeEach, expect, test } from "vitest";
import { present } from "../../src/model/base/present.js";
import type { EndpointsJson, ServiceJson } from "../../src/model/documents/fleet_document.js";
import type { ProfileAnswer } from "../../src/model/wire/services.js";
import { anyInterpreter, environment } from "../environment.js";
import { execute, removeScratch, repository, scratch, tidemark } from "../run.js";
import { ask, type RunningServer, startServer } from "./running_server.js";

const PROGRAM = `
import asyncio, threading

kept = []

def keep(mib):
    kept.append(bytearray(mib << 20))
    return "ok"

def background():
    keep(9)

import flask
flask_app = flask.Flask("shop")

@flask_app.before_request
def check_login():
    pass

@flask_app.route("/flask")
def flask_cart():
    return keep(10)

import fastapi
fast_app = fastapi.FastAPI()

@fast_app.middleware("http")
async def add_header(request, call_next):
    return await call_next(request)

@fast_app.get("/async")
async def fast_cart():
    return keep(11)

@fast_app.get("/sync")
def fast_sync_cart():
    return keep(12)

import django
from django.conf import settings
from django.http import HttpResponse
from django.urls import path
from django.views import View

class DjangoCart(View):
    def get(self, request):
        return HttpResponse(keep(13))

urlpatterns = [path("django", DjangoCart.as_view())]
settings.configure(ROOT_URLCONF=__name__, ALLOWED_HOSTS=["*"], SECRET_KEY="x")
django.setup()

import tornado.httpserver, tornado.httpclient, tornado.testing, tornado.web

class TornadoCart(tornado.web.RequestHandler):
    def post(self):
        self.write(keep(14))

async def request_fast(path):
    async def receive():
        return {"type": "http.request", "body": b"", "more_body": False}
    async def send(message):
        if message["type"] == "http.response.start":
            assert message["status"] == 200, message
    await fast_app({"type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "method": "GET",
        "path": path, "raw_path": path.encode(), "query_string": b"", "headers": [], "scheme": "http",
        "server": ("127.0.0.1", 80), "client": ("127.0.0.1", 1), "root_path": "", "state": {}}, receive, send)

async def request_tornado():
    server = tornado.httpserver.HTTPServer(tornado.web.Application([("/tornado", TornadoCart)]))
    socket, port = tornado.testing.bind_unused_port()
    server.add_sockets([socket])
    answer = await tornado.httpclient.AsyncHTTPClient().fetch(f"http://127.0.0.1:{port}/tornado", method="POST", body="")
    assert answer.code == 200

def main():
    assert flask_app.test_client().get("/flask").status_code == 200
    from django.test import Client
    assert Client().get("/django").status_code == 200
    asyncio.run(request_fast("/async"))
    asyncio.run(request_fast("/sync"))
    asyncio.run(request_tornado())
    thread = threading.Thread(target=background)
    thread.start()
    thread.join()

main()
import time
time.sleep(2)
`;

const labelled = join(repository, "test/programs/labelled_service.py");
let folder: string;
let server: RunningServer;
beforeEach(async () => {
  folder = scratch();
  writeFileSync(join(folder, "shop.py"), PROGRAM);
  server = await startServer(join(folder, "data"));
});
afterEach(() => server.kill());
afterAll(removeScratch);

/** Waits until all of a process that has ended is in the database: its end comes last. */
const arrived = (service: string) =>
  expect
    .poll(async () => {
      const { body } = await ask(`${server.url}/api/v1/service?name=${service}`);
      return (body as Partial<ServiceJson>).instances?.[0]?.endedMs;
    })
    .toBeDefined();

test.skipIf(environment.packagesPython === null)(
  "Flask, FastAPI, Django and Tornado: the route's function, not its middleware",
  async () => {
    const ran = await execute(
      [tidemark, "run", "--to", server.url, "--", present(environment.packagesPython), "shop.py"],
      { cwd: folder, env: { TIDEMARK_SERVICE: "shop" } },
    );
    expect([ran.status, ran.stderr]).toMatchObject([0, expect.not.stringMatching(/Traceback/)]);
    const answer = async () =>
      (await ask(`${server.url}/api/v1/endpoints?service=shop`)).body as EndpointsJson;
    await arrived("shop");
    const { endpoints, outside } = await answer();
    const file = join(folder, "shop.py");
    const mib = (name: string) => {
      const row = endpoints.find(({ function: found }) => found.split(".").at(-1) === name);
      return [row?.file, row?.framework, Math.round((row?.allocatedBytes ?? 0) / 2 ** 20)];
    };
    expect(mib("flask_cart")).toEqual([file, "Flask", 10]);
    expect(mib("fast_cart")).toEqual([file, "FastAPI", 11]);
    expect(mib("fast_sync_cart")).toEqual([file, "AnyIO", 12]);
    const ofFramework = (name: string) =>
      endpoints
        .filter(({ framework }) => framework === name)
        .map((row) => [row.function.split(".").at(-1), Math.round(row.allocatedBytes / 2 ** 20)]);
    expect(ofFramework("Django")).toEqual([["get", 13]]);
    expect(ofFramework("Tornado")).toEqual([["post", 14]]);
    expect(endpoints.map(({ function: name }) => name)).not.toContain("add_header");
    expect(outside.allocatedBytes).toBeGreaterThan(9 * 2 ** 20);

    const printed = await execute([
      ...[tidemark, "fleet", "endpoints", "shop", "--server", server.url],
    ]);
    expect(printed.stdout).toMatch(/Flask +flask_cart .*shop\.py/);
    expect(printed.stdout).toMatch(/outside of endpoints/);
    const flask = `flask_cart ${file}`;
    const { body } = await ask(
      `${server.url}/api/v1/profile?service=shop&top=1&endpoint=${encodeURIComponent(flask)}`,
    );
    // The largest stack of this endpoint, although others have larger ones; what is left is the endpoint's, too.
    const { stacks, other, allocatedBytes } = body as ProfileAnswer;
    expect(stacks).toHaveLength(1);
    expect(stacks[0]?.stack.slice(0, 2)).toMatchObject([
      { function: "keep" },
      { function: "flask_cart" },
    ]);
    const all = endpoints.find(({ endpoint }) => endpoint === flask);
    expect(other.stacks).toBe((all?.stacks ?? 0) - 1);
    expect(allocatedBytes).toBeCloseTo(all?.allocatedBytes ?? 0);
  },
);

test("labels of tidemark.label name endpoints; queries group and filter by any label", async () => {
  const ran = await execute(
    [
      tidemark,
      "run",
      "--to",
      server.url,
      "--period",
      "16K",
      "--",
      anyInterpreter().path,
      labelled,
      "4",
    ],
    {
      cwd: folder,
      env: { TIDEMARK_SERVICE: "labelled", PYTHONPATH: join(repository, "python") },
    },
  );
  expect([ran.status, ran.stderr]).toMatchObject([0, expect.not.stringMatching(/Traceback/)]);
  const get = async (path: string) => (await ask(`${server.url}/api/v1/${path}`)).body;
  const rows = async (query: string) => {
    const { endpoints } = (await get(`endpoints?service=labelled${query}`)) as EndpointsJson;
    return endpoints.map(({ endpoint, framework }) => `${framework} ${endpoint}`).sort();
  };
  await arrived("labelled");
  expect(await rows("")).toEqual(["tidemark.label /ingest", "tidemark.label /search"]);
  expect(await rows("&by=tenant")).toEqual(["tidemark.label acme"]);
  expect(await rows("&where=tenant=acme")).toEqual(["tidemark.label /ingest"]);
  expect(await rows("&where=tenant=")).toEqual(["tidemark.label /search"]);
  const profile = async (query: string) => {
    const answer = (await get(`profile?service=labelled&top=1000${query}`)) as ProfileAnswer;
    const names = answer.stacks.flatMap(({ stack }) => stack.map((frame) => frame.function));
    return { ...answer, names };
  };
  const all = await profile("");
  const ingest = await profile("&where=endpoint=/ingest");
  const search = await profile(`&endpoint=${encodeURIComponent("/search")}`);
  expect([all.names, ingest.names, search.names]).toEqual([
    expect.arrayContaining(["ingest", "search", "train"]),
    expect.not.arrayContaining(["search"]),
    expect.not.arrayContaining(["ingest"]),
  ]);
  expect(ingest.names).toContain("ingest");
  expect(search.names).toContain("search");
  const parts = ["endpoint=/ingest", "endpoint=/search", "endpoint="];
  const addUp = async () => {
    let bytes = (await profile("")).allocatedBytes;
    for (const where of parts) {
      bytes -= (await profile(`&where=${where}`)).allocatedBytes;
    }
    return Math.abs(bytes) < 1;
  };
  expect(await addUp()).toBe(true);
  const refused = await ask(`${server.url}/api/v1/profile?service=labelled&where=tenant`);
  expect([refused.status, refused.body]).toMatchObject([
    400,
    { error: expect.stringMatching(/^.*where is not KEY=VALUE.*$/) },
  ]);
  const printed = await execute([
    tidemark,
    "fleet",
    "endpoints",
    "labelled",
    "--server",
    server.url,
  ]);
  expect(printed.stdout).toMatch(/tidemark\.label +\/ingest/);
  const labels = ["--label", "tenant", "--where", "endpoint=/ingest"];
  const grouped = await execute([
    ...[tidemark, "fleet", "endpoints", "labelled", "--server", server.url, ...labels],
  ]);
  expect(grouped.stdout).toMatch(/tidemark\.label +acme/);
  expect(grouped.stdout).not.toContain("/search");
  const elsewhere = await execute([tidemark, "fleet", "services", "--label", "tenant"]);
  expect([elsewhere.status, elsewhere.stderr]).toEqual([
    2,
    expect.stringMatching(/--label belongs to fleet endpoints; as in: /),
  ]);
});
