/**
 * Pyroscope's query API on the wire: requests as Grafana's data source (protocol buffers), Profiles Drilldown (JSON) and
 * profilecli send them, written by hand.
 */
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { gunzipSync } from "node:zlib";
import { Profile } from "pprof-format";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { removeScratch, scratch } from "../run.js";
import { fieldsOf, Message, numbersIn } from "./messages.js";
import { pprofOf, pushMessage } from "./profiles.js";
import { ask, type RunningServer, startServer } from "./running_server.js";

const MINUTE = 60_000;
const SPACE = "memory:inuse_space:bytes:space:bytes";
const ALLOCATED = "memory:alloc_space:bytes:space:bytes";

let server: RunningServer;
/** Two pods report each minute, half a minute apart: 1,000 and 3,000 bytes in two functions. */
const startMs = Math.floor(Date.now() / MINUTE) * MINUTE - 30 * MINUTE;
const endMs = startMs + 10 * MINUTE;

beforeAll(async () => {
  server = await startServer(join(scratch(), "data"));
  for (const [pod, bytes, delayMs] of [
    ["web-1", 1000, 0],
    ["web-2", 3000, 30_000],
  ] as const) {
    for (let minute = -2; minute < 12; minute++) {
      const timeMs = startMs + minute * MINUTE + delayMs;
      const body = pprofOf(
        { inuse_space: bytes, inuse_objects: bytes / 100, alloc_space: 50 },
        { timeMs, name: bytes === 1000 ? "handle" : "load" },
      );
      const labels = { service_name: "shop", pod, "service.version": "4", odd: 'a"b,c}' };
      await send("push.v1.PusherService/Push", pushMessage(labels, body, `${pod} ${minute}`));
    }
  }
  // Acknowledged frames reach the database about a second later.
  for (let points = 0; points < 20; ) {
    await sleep(200);
    const request = { profileTypeID: ALLOCATED, labelSelector: "{}", step: 600, ...window };
    const { series } = await json("SelectSeries", request);
    points = (series?.[0]?.points[0]?.value ?? 0) / 50;
  }
});
afterAll(async () => {
  await server.kill();
  removeScratch();
});
afterEach(async () => {
  expect((await ask(`${server.url}/healthz`)).status).toBe(200);
});

const window = { start: String(startMs), end: String(endMs) };

async function send(path: string, message: Buffer, headers = {}) {
  const response = await fetch(`${server.url}/${path}`, {
    method: "POST",
    headers: {
      "content-type": "application/proto",
      "connect-protocol-version": "1",
      ...headers,
    },
    body: new Uint8Array(message),
  });
  return { response, bytes: Buffer.from(await response.arrayBuffer()) };
}
async function binary(method: string, message: Message): Promise<Buffer> {
  const { response, bytes } = await send(`querier.v1.QuerierService/${method}`, message.done());
  expect({ status: response.status, said: response.ok ? "" : bytes.toString() }).toEqual({
    status: 200,
    said: "",
  });
  expect(response.headers.get("content-type")).toBe("application/proto");
  return bytes;
}
// biome-ignore lint/suspicious/noExplicitAny: the answers of another program's API
async function json(method: string, request: object): Promise<any> {
  const { body } = await ask(`${server.url}/querier.v1.QuerierService/${method}`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(request),
  });
  return body;
}
const texts = (bytes: Buffer, field: number) =>
  fieldsOf(bytes).flatMap(({ number, value }) => (number === field ? String(value) : []));
const parts = (bytes: Buffer, field: number) =>
  fieldsOf(bytes).flatMap(({ number, value }) =>
    number === field && Buffer.isBuffer(value) ? [value] : [],
  );

describe("binary requests, as Grafana's data source sends them", () => {
  test("ProfileTypes, which is also its health check", async () => {
    const bytes = await binary("ProfileTypes", new Message().number(1, startMs).number(2, endMs));
    const types = parts(bytes, 1).map((type) => texts(type, 1)[0]);
    expect(types).toContain(SPACE);
    expect(types).toContain("memory:inuse_objects:count:space:bytes");
    expect(types).toHaveLength(4);
  });

  test("LabelNames and LabelValues", async () => {
    const matchers = `{__profile_type__="${SPACE}", service_name="shop"}`;
    const names = new Message().text(1, matchers).number(2, startMs).number(3, endMs);
    expect(texts(await binary("LabelNames", names), 1)).toEqual(
      expect.arrayContaining(["service_name", "pod", "version", "odd"]),
    );
    const values = new Message()
      .text(1, "odd")
      .text(2, matchers)
      .number(3, startMs)
      .number(4, endMs);
    expect(texts(await binary("LabelValues", values), 1)).toEqual(['a"b,c}']);
  });

  const series = async (type: string, stepSeconds: number, selector: string, groupBy?: string) => {
    const request = new Message()
      .text(1, type)
      .text(2, selector)
      .number(3, startMs)
      .number(4, endMs)
      .double(6, stepSeconds);
    const bytes = await binary("SelectSeries", groupBy ? request.text(5, groupBy) : request);
    return parts(bytes, 1).map((one) => ({
      labels: parts(one, 1).map((pair) => `${texts(pair, 1)[0]}=${texts(pair, 2)[0]}`),
      values: parts(one, 2).map((point) => parts(point, 1)[0]?.readDoubleLE() ?? 0),
    }));
  };

  test.each([15, 60, 120])("SelectSeries sums a gauge, whatever the step: %d s", async (step) => {
    const [one] = await series(SPACE, step, '{service_name="shop"}');
    expect(one?.values).toHaveLength(600 / step);
    for (const value of one?.values ?? []) {
      expect(value).toBeCloseTo(4000, 6);
    }
  });

  test("SelectSeries groups by a label, and sums what was allocated", async () => {
    const groups = await series(SPACE, 60, '{pod=~"web-.*", pod!="web-3"}', "pod");
    expect(groups.map(({ labels }) => labels[0])).toEqual(["pod=web-2", "pod=web-1"]);
    const [allocated] = await series(ALLOCATED, 60, '{odd="a\\"b,c}"}');
    expect(allocated?.values.reduce((sum, value) => sum + value, 0)).toBe(20 * 50);
    expect(await series(SPACE, 60, '{pod="web-9"}')).toEqual([]);
  });

  const merged = (maxNodes?: number) => {
    const request = new Message()
      .text(1, SPACE)
      .text(2, '{service_name="shop"}')
      .number(3, startMs)
      .number(4, endMs);
    return maxNodes === undefined ? request : request.number(5, maxNodes);
  };

  test("SelectMergeStacktraces", async () => {
    const [graph = Buffer.alloc(0)] = parts(await binary("SelectMergeStacktraces", merged()), 1);
    const names = texts(graph, 1);
    expect(names[0]).toBe("total");
    const levels = parts(graph, 2).map((level) => numbersIn(parts(level, 1)[0] ?? level));
    expect(levels[0]).toEqual([0, 4000, 0, 0]);
    const [, second = []] = levels;
    const bars = [0, 4].map((at) => [names[second[at + 3] ?? 0], second[at + 1], second[at + 2]]);
    expect(bars.sort()).toEqual([
      ["handle", 1000, 1000],
      ["load", 3000, 3000],
    ]);
    expect(fieldsOf(graph).find(({ number }) => number === 3)?.value).toBe(4000);
    expect(fieldsOf(graph).find(({ number }) => number === 4)?.value).toBe(3000);
  });

  test("SelectMergeProfile is a pprof profile", async () => {
    const profile = Profile.decode(new Uint8Array(await binary("SelectMergeProfile", merged())));
    const text = (index: unknown) => profile.stringTable.strings[Number(index)];
    expect(profile.sampleType.map(({ type, unit }) => [text(type), text(unit)])).toEqual([
      ["inuse_space", "bytes"],
    ]);
    const functions = new Map(profile.function.map((one) => [Number(one.id), one]));
    const locations = new Map(profile.location.map((one) => [Number(one.id), one.line[0]]));
    const stacks = profile.sample.map(({ locationId, value }) => {
      const line = locations.get(Number(locationId[0]));
      const found = functions.get(Number(line?.functionId));
      return [text(found?.name), text(found?.filename), Number(line?.line), Number(value[0])];
    });
    expect(stacks.sort()).toEqual([
      ["handle", "app.py", 12, 1000],
      ["load", "app.py", 12, 3000],
    ]);
    const sum = (of: Profile) => of.sample.reduce((all, { value }) => all + Number(value[0]), 0);
    const one = Profile.decode(new Uint8Array(await binary("SelectMergeProfile", merged(1))));
    expect([one.sample.length, sum(one)]).toEqual([2, 4000]);
  });

  const heatmap = (selector: string, queryType = 1) =>
    new Message()
      .text(1, SPACE)
      .text(2, selector)
      .number(3, startMs)
      .number(4, endMs)
      .double(5, 60)
      .text(6, "service_name")
      .number(7, queryType);

  test("SelectHeatmap counts processes by their value", async () => {
    const [one = Buffer.alloc(0), ...others] = parts(
      await binary("SelectHeatmap", heatmap('{service_name="shop"}')),
      1,
    );
    expect(others).toEqual([]);
    expect(parts(one, 1).map((pair) => texts(pair, 2)[0])).toEqual(["shop"]);
    const slots = parts(one, 2);
    expect(slots).toHaveLength(10);
    for (const slot of slots) {
      const [least = Buffer.alloc(0)] = parts(slot, 2);
      expect([least.readDoubleLE(0), least.readDoubleLE(8)]).toEqual([
        1000,
        expect.closeTo(2900, 0),
      ]);
      expect(numbersIn(parts(slot, 3)[0] ?? Buffer.alloc(0))).toEqual([1, 1]);
    }
    expect(parts(await binary("SelectHeatmap", heatmap("{}", 2)), 1)).toEqual([]);
    expect(parts(await binary("SelectHeatmap", heatmap('{pod="none"}')), 1)).toEqual([]);
  });

  test("SelectMergeStacktraces keeps the exact total in `other`", async () => {
    const [graph = Buffer.alloc(0)] = parts(await binary("SelectMergeStacktraces", merged(2)), 1);
    const names = texts(graph, 1);
    const [, level = Buffer.alloc(0)] = parts(graph, 2);
    const second = numbersIn(parts(level, 1)[0] ?? level);
    expect(second.filter((_, at) => at % 4 === 1).reduce((sum, value) => sum + value, 0)).toBe(
      4000,
    );
    expect(names[second[7] ?? 0]).toBe("other");
  });

  test("answers are compressed where they are asked to be", async () => {
    const path = "querier.v1.QuerierService/ProfileTypes";
    const { request } = await import("node:http");
    const answer = await new Promise<{ encoding: string | undefined; bytes: Buffer }>((resolve) => {
      const sent = request(
        `${server.url}/${path}`,
        {
          method: "POST",
          headers: { "content-type": "application/proto", "accept-encoding": "gzip" },
        },
        (response) => {
          const chunks: Buffer[] = [];
          response.on("data", (chunk: Buffer) => chunks.push(chunk));
          response.on("end", () =>
            resolve({
              encoding: response.headers["content-encoding"],
              bytes: Buffer.concat(chunks),
            }),
          );
        },
      );
      sent.end(new Message().number(1, startMs).number(2, endMs).done());
    });
    const plain = answer.encoding === "gzip" ? gunzipSync(answer.bytes) : answer.bytes;
    expect(parts(plain, 1)).toHaveLength(4);
  });
});

describe("JSON requests, as Profiles Drilldown sends them", () => {
  test("Series lists services with their types", async () => {
    const { labelsSet } = await json("Series", {
      matchers: [],
      labelNames: ["service_name", "__profile_type__"],
      ...window,
    });
    expect(labelsSet).toHaveLength(4);
    expect(labelsSet[0].labels).toEqual(
      expect.arrayContaining([{ name: "service_name", value: "shop" }]),
    );
  });

  test("numbers of 64 bits are texts, and unknown fields are no error", async () => {
    const { flamegraph } = await json("SelectMergeStacktraces", {
      profileTypeID: SPACE,
      labelSelector: '{service_name="shop"}',
      somethingNew: 1,
      ...window,
    });
    expect(flamegraph.total).toBe("4000");
    expect(flamegraph.levels[0].values).toEqual(["0", "4000", "0", "0"]);
  });

  test("Diff compares two selections", async () => {
    const side = (pod: string) => ({
      profileTypeID: SPACE,
      labelSelector: `{pod="${pod}"}`,
      ...window,
    });
    const { flamegraph } = await json("Diff", { left: side("web-1"), right: side("web-2") });
    expect(flamegraph).toMatchObject({ leftTicks: "1000", rightTicks: "3000", total: "4000" });
    expect(flamegraph.levels[0].values).toHaveLength(7);
  });

  test("GetProfileStats", async () => {
    expect(await json("GetProfileStats", {})).toMatchObject({ dataIngested: true });
  });
});

describe("/pyroscope/render", () => {
  test("answers a flamebearer with a timeline", async () => {
    const query = encodeURIComponent(`${SPACE}{service_name="shop"}`);
    const { status, body } = await ask(
      `${server.url}/pyroscope/render?query=${query}&from=${startMs}&until=${endMs}&format=json`,
    );
    expect(status).toBe(200);
    expect(body).toMatchObject({
      version: 1,
      flamebearer: { numTicks: 4000, maxSelf: 3000 },
      metadata: { format: "single", units: "bytes" },
      timeline: { startTime: startMs / 1000 },
      coverage: { factor: 1 },
    });
  });

  test("compares two sides", async () => {
    const side = (name: string, pod: string) =>
      `${name}Query=${encodeURIComponent(`${SPACE}{pod="${pod}"}`)}&${name}From=${startMs}&${name}Until=${endMs}`;
    const { body } = await ask(
      `${server.url}/pyroscope/render-diff?${side("left", "web-1")}&${side("right", "web-2")}`,
    );
    expect(body).toMatchObject({ leftTicks: 1000, rightTicks: 3000 });
  });
});

describe("bad queries get one line", () => {
  const select = (change: object) =>
    json("SelectSeries", {
      profileTypeID: SPACE,
      labelSelector: "{}",
      step: 60,
      ...window,
      ...change,
    });

  test.each([
    ["a type that is not kept", { profileTypeID: "process_cpu:cpu:nanoseconds:cpu:nanoseconds" }],
    ["a selector that is none", { labelSelector: '{a="b' }],
    ["SQL in a selector", { labelSelector: `{a="b"} OR 1=1; DROP TABLE series` }],
    ["a regular expression that is none", { labelSelector: '{pod=~"("}' }],
    ["no step", { step: 0 }],
    ["a window that ends before it begins", { start: String(endMs), end: String(startMs) }],
    ["a million steps", { step: 0.0001 }],
  ])("%s", async (_, change) => {
    const answer = await select(change);
    expect(answer.code).toBe("invalid_argument");
    expect(answer.message).not.toContain("\n");
  });

  test("SQL in a label name is treated as a name", async () => {
    const name = `x'] ); DROP TABLE series; --`;
    expect(await json("LabelValues", { name, ...window })).toEqual({});
    expect(await select({ groupBy: [name] })).toHaveProperty("series");
  });

  test.each(["constructor", "toString", "valueOf"])("a label called %s", async (name) => {
    expect(await json("LabelValues", { name, ...window })).toEqual({});
    expect(await select({ labelSelector: `{${name}="x"}`, groupBy: [name] })).toEqual({});
  });

  test.each(["Infinity", 1e300])("a step of %s is the whole window", async (step) => {
    const { series } = await select({ labelSelector: '{service_name="shop"}', step });
    expect(series[0].points).toHaveLength(1);
    expect(series[0].points[0].value).toBeCloseTo(4000, 6);
  });

  test("a pattern that takes other engines forever", async () => {
    const answer = await select({ labelSelector: '{pod=~"(a+)+$|(web-)*(w|we|web|.*)*-[0-9]+"}' });
    expect(answer.series).not.toHaveLength(0);
    expect(answer).toEqual(await select({ labelSelector: '{pod=~"web-[0-9]+"}' }));
  });
});

test("of functions with equal weight, no more are shown or named than requested", async () => {
  const lines = Array.from({ length: 50 }, (_, at) => `main;f${at} 10`).join("\n");
  const name = "equal.inuse_space{face=日本😀}";
  const query = new URLSearchParams({ name, from: String(startMs), until: String(endMs) });
  const sent = await fetch(`${server.url}/ingest?${query}`, { method: "POST", body: lines });
  expect(sent.status).toBe(200);
  const labelSelector = '{service_name="equal", face="日本\\U0001f600"}';
  const ask = { profileTypeID: SPACE, labelSelector, maxNodes: "10", ...window };
  const graph = async () => (await json("SelectMergeStacktraces", ask)).flamegraph;
  await expect.poll(async () => (await graph()).total).toBe("500");
  const { names, levels } = await graph();
  expect(levels[2].values.filter((_: string, at: number) => at % 4 === 1)).toEqual([
    ...Array(8).fill("10"),
    "420",
  ]);
  expect(names).toHaveLength(11);
});
