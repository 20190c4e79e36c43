/** Third-party profilers that send to the server: their real clients, and hand-written requests. */

import { execFile } from "node:child_process";
import { randomBytes } from "node:crypto";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { gzipSync } from "node:zlib";
import { afterAll, afterEach, beforeEach, describe, expect, test } from "vitest";
import { readEnvironment } from "../../scripts/environment.mjs";
import { present } from "../../src/model/base/present.js";
import type { ServiceJson } from "../../src/model/documents/fleet_document.js";
import type { ProfileAnswer } from "../../src/model/wire/services.js";
import { removeScratch, scratch } from "../run.js";
import { Message } from "./messages.js";
import { pprofOf, pushMessage } from "./profiles.js";
import { ask, type RunningServer, startServer } from "./running_server.js";

afterAll(removeScratch);

const execute = promisify(execFile);
const { sendersPython } = readEnvironment();
const withClients = test.skipIf(sendersPython === null);

let folder: string;
let server: RunningServer;
beforeEach(async () => {
  folder = scratch();
  server = await startServer(join(folder, "data"));
});
afterEach(async () => {
  await server.kill();
});

const service = async (name: string) =>
  (await ask(`${server.url}/api/v1/service?name=${name}`)).body as ServiceJson;
const profile = async (name: string, startMs: number, endMs: number) =>
  (await ask(`${server.url}/api/v1/profile?service=${name}&from=${startMs}&to=${endMs}`))
    .body as ProfileAnswer;

const program = `import time
kept = []
def remember(size):
    kept.append(bytearray(size))
end = time.monotonic() + 7
while time.monotonic() < end:
    remember(200_000)
    time.sleep(0.05)
`;

describe("real clients", () => {
  withClients("pyroscope-io sends its memory profiles", async () => {
    const startMs = Date.now();
    const configure = `import pyroscope
pyroscope.configure(application_name="shop", server_address="${server.url}", upload_interval=2,
    tags={"version": "41", "region": "eu"}, mem_enabled=True, mem_heap_sample_size=65536, cpu_enabled=False)
`;
    const path = join(folder, "app.py");
    writeFileSync(path, `${configure}${program}pyroscope.shutdown()\n`);
    await execute(present(sendersPython), [path]);
    await expect.poll(async () => (await service("shop")).instances?.length).toBe(1);
    const { instances } = await service("shop");
    expect(instances[0]).toMatchObject({ version: "41", source: "pyroscope" });
    expect(instances[0]?.labels).toMatchObject({ region: "eu" });
    expect(present(instances[0]?.liveBytes)).toBeGreaterThan(5e6);
    const { stacks } = await profile("shop", startMs, Date.now());
    expect(stacks[0]?.stack[0]).toMatchObject({ function: "remember", kind: "python" });
    expect(stacks[0]?.allocatedBytes).toBeGreaterThan(5e6);
  });

  withClients("ddtrace sends its memory profiles", async () => {
    const startMs = Date.now();
    const path = join(folder, "app.py");
    writeFileSync(path, program);
    const ddtrace = join(present(sendersPython), "../ddtrace-run");
    await execute(ddtrace, [present(sendersPython), path], {
      env: {
        ...process.env,
        DD_SERVICE: "till",
        DD_VERSION: "7",
        DD_ENV: "prod",
        DD_PROFILING_ENABLED: "1",
        DD_PROFILING_STACK_ENABLED: "0",
        DD_PROFILING_LOCK_ENABLED: "0",
        DD_PROFILING_UPLOAD_INTERVAL: "2",
        DD_TRACE_AGENT_URL: server.url,
        DD_TRACE_ENABLED: "0",
        DD_INSTRUMENTATION_TELEMETRY_ENABLED: "0",
        DD_REMOTE_CONFIGURATION_ENABLED: "0",
      },
    });
    await expect.poll(async () => (await service("till")).instances?.length).toBe(1);
    const { instances } = await service("till");
    expect(instances[0]).toMatchObject({ version: "7", env: "prod", source: "datadog" });
    expect(present(instances[0]).pid).toBeGreaterThan(0);
    const { stacks, allocatedBytes } = await profile("till", startMs, Date.now());
    expect(allocatedBytes).toBeGreaterThan(10e6);
    expect(stacks.some(({ stack }) => stack[0]?.function === "remember")).toBe(true);
  });
});

const ingest = (query: string, body: Buffer | FormData | string, headers = {}) =>
  ask(`${server.url}/ingest?${query}`, {
    method: "POST",
    headers,
    body: Buffer.isBuffer(body) ? new Uint8Array(body) : body,
  });
const push = (message: Buffer, headers = {}) =>
  ask(`${server.url}/push.v1.PusherService/Push`, {
    method: "POST",
    headers: { "content-type": "application/proto", ...headers },
    body: new Uint8Array(message),
  });
/** Waits until acknowledged frames are in the database. */
const stored = async (name: string, instances = 1) => {
  await expect.poll(async () => (await service(name)).instances?.length).toBe(instances);
};

describe("Pyroscope's /ingest", () => {
  test("takes pprof, plain, compressed and in a form", async () => {
    const body = pprofOf({ inuse_space: 1000, inuse_objects: 2 });
    expect((await ingest("name=plain{version=1}&format=pprof", body)).status).toBe(200);
    expect((await ingest("name=zipped&format=pprof", gzipSync(body))).status).toBe(200);
    const form = new FormData();
    form.set("profile", new Blob([new Uint8Array(body)]), "profile.pprof");
    expect((await ingest("name=form", form)).status).toBe(200);
    for (const name of ["plain", "zipped", "form"]) {
      await stored(name);
      const { instances } = await service(name);
      expect(instances[0]).toMatchObject({ source: "pyroscope", liveBytes: 1000 });
    }
  });

  test("takes folded stacks whose name ends with their type", async () => {
    const from = Math.floor(Date.now() / 1000) - 10;
    const name = "folded.inuse_space{track=a}";
    const { status } = await ingest(
      `name=${encodeURIComponent(name)}&from=${from}&until=${from + 10}&format=folded`,
      "main (app.py:3);handle (app.py:12) 4096\nmain (app.py:3) 100\n",
    );
    expect(status).toBe(200);
    await stored("folded");
    const { instances } = await service("folded");
    expect(instances[0]).toMatchObject({ liveBytes: 4196, labels: { track: "a" } });
    const { stacks } = await profile("folded", from * 1000, from * 1000 + 10_000);
    expect(stacks[0]?.stack).toMatchObject([
      { function: "handle", file: "app.py", line: 12 },
      { function: "main", line: 3 },
    ]);
    expect(stacks[0]?.liveBytes).toBeCloseTo(4096, 3);
  });

  test("stores what is sent twice once, also after a restart", async () => {
    const body = pprofOf({ alloc_space: 5000 }, { timeMs: Date.now() - 5000 });
    const send = () => ingest("name=twice&format=pprof", body);
    expect((await Promise.all([send(), send(), send()])).map(({ status }) => status)).toEqual([
      200, 200, 200,
    ]);
    await stored("twice");
    await server.kill();
    server = await startServer(join(folder, "data"));
    expect((await send()).status).toBe(200);
    const other = pprofOf({ alloc_space: 300 }, { timeMs: Date.now() - 4000, name: "other" });
    expect((await ingest("name=twice&format=pprof", other)).status).toBe(200);
    await expect
      .poll(async () => (await profile("twice", Date.now() - 60_000, Date.now())).allocatedBytes)
      .toBe(5300);
    expect((await service("twice")).instances).toHaveLength(1);
  });
});

describe("Pyroscope's push API", () => {
  test("takes messages and JSON, and a repeated ID once", async () => {
    const labels = {
      __name__: "memory",
      service_name: "pushed",
      "service.version": "9",
      "k8s.pod.name": "pod-1",
      odd: 'a"b{c},ü',
    };
    const body = pprofOf({ alloc_space: 700 }, { timeMs: Date.now() - 2000 });
    expect((await push(pushMessage(labels, gzipSync(body), "id-1"))).status).toBe(200);
    const request = {
      series: [
        {
          labels: Object.entries(labels).map(([name, value]) => ({ name, value })),
          samples: [{ ID: "id-1", rawProfile: gzipSync(body).toString("base64") }],
        },
      ],
    };
    const json = await push(gzipSync(Buffer.from(JSON.stringify(request))), {
      "content-type": "application/json",
      "content-encoding": "gzip",
    });
    expect(json).toMatchObject({ status: 200, body: {} });
    await stored("pushed");
    const { instances } = await service("pushed");
    expect(instances[0]).toMatchObject({ version: "9", pod: "pod-1", labels: { odd: 'a"b{c},ü' } });
    const { allocatedBytes } = await profile("pushed", Date.now() - 60_000, Date.now());
    expect(allocatedBytes).toBe(700);
  });

  test("recognizes a sender with long labels after a restart", async () => {
    const text = () => randomBytes(900).toString("hex");
    const labels = {
      service_name: "long",
      ...Object.fromEntries(Array.from({ length: 20 }, (_, at) => [`label_${at}`, text()])),
    };
    const body = pprofOf({ alloc_space: 700 }, { timeMs: Date.now() - 2000 });
    const send = () => push(pushMessage(labels, body, "long-1"));
    expect((await send()).status).toBe(200);
    await stored("long");
    await server.kill();
    server = await startServer(join(folder, "data"));
    expect((await send()).status).toBe(200);
    const more = pprofOf({ alloc_space: 11 }, { timeMs: Date.now() - 1000 });
    expect((await push(pushMessage(labels, more, "long-2"))).status).toBe(200);
    await expect
      .poll(async () => (await profile("long", Date.now() - 60_000, Date.now())).allocatedBytes)
      .toBe(711);
    expect((await service("long")).instances).toHaveLength(1);
  });
});

/** An OTLP request of one profile with one sample. */
function otlp(version: "1.9" | "1.10", value: number): Buffer {
  const strings = ["", "inuse_space", "bytes", "handle", "app.py"];
  const sample = (message: Message) =>
    version === "1.10"
      ? message.number(1, 1).numbers(4, [value])
      : message.number(1, 1).numbers(2, [value]).numbers(3, [1]);
  return new Message()
    .message(1, (resource) => {
      resource.message(1, (about) =>
        about.message(1, (pair) =>
          pair.text(1, "service.name").message(2, (any) => any.text(1, `otlp-${version}`)),
        ),
      );
      resource.message(2, (scope) =>
        scope.message(2, (one) =>
          one
            .message(1, (type) => type.number(1, 1).number(2, 2))
            .message(2, sample)
            .fixed64(3, BigInt(Date.now() - 5000) * 1_000_000n)
            .number(4, 5_000_000_000),
        ),
      );
    })
    .message(2, (dictionary) => {
      dictionary
        .message(2, () => {})
        .message(2, (location) => location.message(3, (line) => line.number(1, 1).number(2, 12)))
        .message(3, () => {})
        .message(3, (found) => found.number(1, 3).number(3, 4));
      for (const text of strings) {
        dictionary.text(5, text);
      }
      dictionary
        .message(6, () => {})
        .message(6, (pair) => pair.number(1, 3).message(2, (any) => any.text(1, "x")))
        .message(7, () => {})
        .message(7, (stack) => stack.numbers(1, [1]));
    })
    .done();
}

describe("OTLP profiles", () => {
  const send = (body: Buffer) =>
    ask(`${server.url}/v1development/profiles`, {
      method: "POST",
      headers: { "content-type": "application/x-protobuf" },
      body: new Uint8Array(body),
    });

  test.each(["1.9", "1.10"] as const)("takes the numbering of %s", async (version) => {
    expect((await send(otlp(version, 2048))).status).toBe(200);
    expect((await send(otlp(version, 2048))).status).toBe(200);
    await stored(`otlp-${version}`);
    const { instances } = await service(`otlp-${version}`);
    expect(instances[0]).toMatchObject({ source: "otlp", liveBytes: 2048 });
  });

  test("refuses samples without values", async () => {
    const empty = otlp("1.10", 1).toString("latin1").replace("\x22\x01\x01", "\x2a\x01\x01");
    const { status, body } = await send(Buffer.from(empty, "latin1"));
    expect(status).toBe(400);
    expect(body).toMatchObject({ error: expect.stringContaining("without values") });
  });
});

describe("hostile profiles are refused with one line, and the server keeps running", () => {
  const bomb = gzipSync(Buffer.alloc(64 << 20));
  const labels = { service_name: "hostile" };
  const forbidden = { ...labels, ...Object.fromEntries([["__proto__", "x"]]) };
  /** 16,000 samples of a few bytes each. */
  const wide = (id: number) => {
    const sample = new Message().message(2, (one) => one.number(1, 1).number(2, 1)).done();
    const plain = Buffer.concat([pprofOf({ inuse_space: 1 }), ...Array(15_999).fill(sample)]);
    return pushMessage(labels, gzipSync(plain), String(id));
  };
  /** 4 MiB, mostly in a field that the server ignores. */
  const padded = (id: number) => {
    const filling = new Message().bytes(3, Buffer.alloc((4 << 20) - 2000)).done();
    const plain = Buffer.concat([pprofOf({ inuse_space: 1 }), filling]);
    return pushMessage(labels, gzipSync(plain), String(id));
  };
  const cases: [string, () => Promise<{ status: number; body: unknown }>, number, string][] = [
    ["a gzip bomb as body", () => push(bomb, { "content-encoding": "gzip" }), 413, "request-bytes"],
    ["a gzip bomb as profile", () => push(pushMessage(labels, bomb, "1")), 413, "profile-bytes"],
    [
      "a deep stack",
      () => push(pushMessage(labels, pprofOf({ inuse_space: 1 }, { depth: 1001 }), "1")),
      413,
      "stack-depth",
    ],
    [
      "a long label",
      () => push(pushMessage({ ...labels, a: "x".repeat(2049) }, pprofOf({ inuse_space: 1 }), "1")),
      413,
      "label-value",
    ],
    [
      "a long function name",
      () => push(pushMessage(labels, pprofOf({ inuse_space: 1 }, { name: "f".repeat(5000) }), "1")),
      413,
      "name-bytes",
    ],
    [
      "many samples",
      () => push(pushMessage(labels, Buffer.alloc(40_000, "\x12\x00"), "1")),
      413,
      "samples-per-profile",
    ],
    [
      "a small request of many large profiles",
      () => push(Buffer.concat(Array.from({ length: 20 }, (_, at) => wide(at)))),
      413,
      "samples-per-request",
    ],
    [
      "a small request that inflates beyond measure",
      () => push(Buffer.concat(Array.from({ length: 20 }, (_, at) => padded(at)))),
      413,
      "inflated-bytes-per-request",
    ],
    [
      "a label that no recording can hold, after a good series",
      () =>
        push(
          Buffer.concat([
            pushMessage(labels, pprofOf({ inuse_space: 1 }), "1"),
            pushMessage(forbidden, pprofOf({ inuse_space: 1 }), "1"),
          ]),
        ),
      400,
      "__proto__",
    ],
    ["groups that nest", () => push(Buffer.alloc(100_000, "\x0b")), 400, "cannot be read"],
    [
      "JSON that nests",
      () => push(Buffer.alloc(1 << 20, "["), { "content-type": "application/json" }),
      400,
      "not JSON",
    ],
    ["noise", () => push(Buffer.from("no message at all")), 400, "cannot be read"],
    [
      "a profile of 1970",
      () => push(pushMessage(labels, pprofOf({ inuse_space: 1 }, { timeMs: 1000 }), "1")),
      400,
      "before 2000",
    ],
    [
      "a profile of 2200",
      () =>
        push(pushMessage(labels, pprofOf({ inuse_space: 1 }, { timeMs: Date.UTC(2200, 0) }), "1")),
      400,
      "a day ahead",
    ],
    ["a name without service", () => ingest("name={a=b}&format=pprof", "x"), 400, "name"],
    ["another format", () => ingest("name=a&format=jfr", "x"), 400, "jfr"],
    [
      "a broken form",
      () => ingest("name=a", "x", { "content-type": "multipart/form-data; boundary=a" }),
      400,
      "form",
    ],
    [
      "a body of 9 MiB",
      () => ingest("name=a&format=pprof", Buffer.alloc(9 << 20)),
      413,
      "request-bytes",
    ],
  ];

  test.each(cases)("%s", async (_, send, expected, words) => {
    const { status, body } = await send();
    expect({ status, error: (body as { error: string }).error }).toEqual({
      status: expected,
      error: expect.stringContaining(words),
    });
    expect((body as { error: string }).error).not.toContain("\n");
    expect((await ask(`${server.url}/healthz`)).status).toBe(200);
    expect((await ask(`${server.url}/api/v1/services`)).body).toMatchObject({ services: [] });
  });

  test("nothing of a request is stored if one of its profiles is refused", async () => {
    const good = pushMessage({ service_name: "good" }, pprofOf({ inuse_space: 1 }), "1");
    const bad = pushMessage({ service_name: "bad" }, Buffer.from("x"), "1");
    expect((await push(Buffer.concat([good, bad]))).status).toBe(400);
    await new Promise((resolve) => setTimeout(resolve, 2000));
    expect((await ask(`${server.url}/api/v1/services`)).body).toMatchObject({ services: [] });
  });
});
