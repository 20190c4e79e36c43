/** Expensive requests: others are answered in the meantime, and profiles sent again after a restart are recognized. */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { Location, Function as PprofFunction, Profile, StringTable } from "pprof-format";
import { afterAll, afterEach, beforeEach, expect, test } from "vitest";
import { removeScratch, scratch } from "../run.js";
import { pprofOf, pushMessage } from "./profiles.js";
import { ask, type RunningServer, startServer } from "./running_server.js";

afterAll(removeScratch);

let folder: string;
let server: RunningServer;
beforeEach(async () => {
  folder = join(scratch(), "data");
  server = await startServer(folder);
});
afterEach(() => server.kill());

const push = (body: Buffer) =>
  ask(`${server.url}/push.v1.PusherService/Push`, {
    method: "POST",
    headers: { "content-type": "application/proto" },
    body: new Uint8Array(body),
  });

/** 8,000 samples of different stacks. */
function largeProfile(seed: number): Buffer {
  const strings = new StringTable();
  const text = (value: string) => strings.dedup(value);
  const sampleType = [{ type: text("inuse_space"), unit: text("bytes") }];
  const functions = 200;
  return Buffer.from(
    new Profile({
      sampleType,
      sample: Array.from({ length: 8_000 }, (_, at) => ({
        locationId: [
          1 + (at % functions),
          1 + (Math.floor(at / functions) % functions),
          1 + (seed % functions),
        ],
        value: [1 + at],
        label: [],
      })),
      location: Array.from(
        { length: functions },
        (_, at) => new Location({ id: at + 1, line: [{ functionId: at + 1, line: at }] }),
      ),
      function: Array.from(
        { length: functions },
        (_, at) =>
          new PprofFunction({ id: at + 1, name: text(`f${at}`), filename: text("app.py") }),
      ),
      stringTable: strings,
      timeNanos: BigInt(Date.now() + seed) * 1_000_000n,
    }).encode(),
  );
}

test("others are answered while a request of 160,000 samples is taken", async () => {
  const body = Buffer.concat(
    Array.from({ length: 20 }, (_, at) =>
      pushMessage({ service_name: "wide" }, largeProfile(at), `id-${at}`),
    ),
  );
  let isOver = false;
  const large = push(body).finally(() => {
    isOver = true;
  });
  let answered = 0;
  const isDecoded = () => readdirSync(join(folder, "streams")).length > 0;
  while (!isOver) {
    expect((await ask(`${server.url}/healthz`)).status).toBe(200);
    answered += isDecoded() ? 0 : 1;
  }
  expect((await large).status).toBe(200);
  // All profiles are decoded before the first is stored. In a single event loop turn, it would be one or two.
  expect(answered).toBeGreaterThan(2);
});

test("a profile of an ended stream is recognized after a restart", async () => {
  const labels = { service_name: "old", pid: "7" };
  const hour = 3_600_000;
  const of = (timeMs: number, id: string) =>
    pushMessage(labels, pprofOf({ inuse_space: 1000 }, { timeMs }), id);
  const now = Date.now();
  const all = [of(now - 27 * hour, "first"), of(now - hour, "second"), of(now, "third")];
  for (const body of all) {
    expect((await push(body)).status).toBe(200);
  }
  const streams = () =>
    readdirSync(join(folder, "streams"))
      .sort()
      .map((name) => [name, readFileSync(join(folder, "streams", name)).length]);
  const before = streams();
  expect(before).toHaveLength(2);
  await server.kill();
  server = await startServer(folder);
  for (const body of all) {
    expect((await push(body)).status).toBe(200);
  }
  expect(streams()).toEqual(before);
});

test("regular expressions are bounded", async () => {
  await push(pushMessage({ service_name: "shop" }, pprofOf({ inuse_space: 1 }), "1"));
  const values = async (...patterns: string[]) => {
    const selector = `{${patterns.map((pattern) => `service_name=~${JSON.stringify(pattern)}`).join(",")}}`;
    const { status, body } = await ask(`${server.url}/querier.v1.QuerierService/LabelValues`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ name: "service_name", matchers: [selector] }),
    });
    return [status, body] as [number, { names?: string[]; message?: string }];
  };
  // What is acknowledged reaches the database a moment later.
  await expect.poll(() => values("sh.p", "(s|h|o|p){4}")).toEqual([200, { names: ["shop"] }]);
  expect(await values("(s|h|o|p|[a-z]){1,100}")).toEqual([200, { names: ["shop"] }]);
  for (const many of [
    ["(.*a.*){900}"],
    ["\\p{L}{90}"],
    Array.from({ length: 100 }, () => "(.*a.*){900}"),
    ["((a{100}){100}){100}"],
    ["((.{1,30}){1,30}x){1,20}"],
  ]) {
    expect(await values(...many)).toEqual([
      400,
      expect.objectContaining({ message: expect.stringContaining("limit pattern-size") }),
    ]);
  }
  for (const broken of ["(", "a{1001}", "(?<=a)b", "\\1", "[z-a]"]) {
    expect(await values(broken)).toEqual([
      400,
      expect.objectContaining({ message: expect.stringContaining("not a regular expression") }),
    ]);
  }
});
