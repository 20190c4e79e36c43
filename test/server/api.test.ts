/** The HTTP API: answers follow the OpenAPI document, differences and growth are exact, the terminal shows them. */
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { Ajv2020 } from "ajv/dist/2020.js";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { FleetDiagnosesJson } from "../../src/model/documents/fleet_diagnosis_document.js";
import type {
  FleetDiffJson,
  FleetVerdictsJson,
  GrowingJson,
} from "../../src/model/documents/fleet_document.js";
import { streamName } from "../../src/recording/sender/stream_name.js";
import { streamBytes } from "../../src/recording/streams.fixture.js";
import { validate } from "../recorded_app.js";
import { execute, removeScratch, scratch, tidemark } from "../run.js";
import { ask, post, type RunningServer, startServer } from "./running_server.js";

const SECOND = 1000;
const MIB = 2 ** 20;
const LENGTH = 400 * SECOND;
const START = Date.now() - LENGTH;

/** Two instances of version 41 hold 10 MiB each in `load`; one of version 42 holds 10 MiB more every 100 s in `cache`. */
const streams = [
  { version: "41", pid: 1, cache: [2, 2, 2, 2] },
  { version: "41", pid: 2, cache: [2, 2, 2, 2] },
  { version: "42", pid: 3, cache: [10, 20, 30, 40] },
].map(({ version, pid, cache }) =>
  streamBytes({
    service: "shop",
    version,
    pid,
    startedMs: START,
    rss: Array.from({ length: 400 }, (_, n) => [n * SECOND, 5e7 + n * pid * 1e5] as const),
    profiles: cache.map((mebibytes, n) => [
      n * 100 * SECOND,
      `main;load ${10 * MIB} allocated=${MIB} variance=1\nmain;cache ${mebibytes * MIB} variance=1`,
    ]),
    endedAfterMs: LENGTH,
  }),
);

let server: RunningServer;
beforeAll(async () => {
  server = await startServer(join(scratch(), "data"));
  for (const bytes of streams) {
    expect((await post(server.url, bytes)).status).toBe(200);
    // What is acknowledged can be asked for at once.
    const instance = await ask(`${server.url}/api/v1/instance?id=${streamName(bytes)}`);
    expect(instance.status).toBe(200);
  }
  for (let verdicts = 0; verdicts < 3; await sleep(200)) {
    verdicts = (await get<FleetVerdictsJson>("verdicts", {})).verdicts.length;
  }
});
afterAll(async () => {
  await server.kill();
  removeScratch();
});

const window = { from: String(START), to: String(START + LENGTH) };
async function get<Answer>(path: string, query: Record<string, string>): Promise<Answer> {
  const words = new URLSearchParams({ ...window, ...query });
  return (await ask(`${server.url}/api/v1/${path}?${words}`)).body as Answer;
}
const leaves = (rows: readonly { stack: { function: string }[] }[]) =>
  rows.map(({ stack }) => stack[0]?.function);

type Operation = {
  parameters: { name: string; required: boolean }[];
  responses: Record<string, { content?: Record<string, { schema?: object }> }>;
};
type OpenApi = { paths: Record<string, Record<string, Operation>>; components: object };

describe("the OpenAPI document", () => {
  const examples: Record<string, string> = {
    service: "shop",
    name: "shop",
    left: '{service_name="shop", version="41"}',
    right: '{service_name="shop", version="42"}',
    id: streamName(streams[0] ?? Buffer.alloc(0)),
  };

  test("describes every answer as it is", async () => {
    const { body, headers } = await ask(`${server.url}/api/openapi.json`);
    expect(headers.get("content-type")).toContain("application/json");
    const { paths, components } = body as OpenApi;
    const ajv = new Ajv2020({ strict: false });
    const checkOf = (schema: object) => ajv.compile({ ...schema, components });
    let answers = 0;
    for (const [path, methods] of Object.entries(paths)) {
      const { get: operation } = methods;
      const schema = operation?.responses["200"]?.content?.["application/json"]?.schema;
      if (operation === undefined || schema === undefined) {
        continue;
      }
      const needed = operation.parameters.filter(({ required }) => required);
      const isSeries = path.endsWith("/series");
      const query = new URLSearchParams(
        needed.map(({ name }) => [
          name,
          isSeries && name === "name" ? "rssBytes" : (examples[name] ?? ""),
        ]),
      );
      const { status, body: answer } = await ask(`${server.url}${path}?${query}`);
      expect([path, status]).toEqual([path, 200]);
      const check = checkOf(schema);
      expect(check(answer), `${path}: ${JSON.stringify(check.errors)}`).toBe(true);
      answers += 1;
      const error = operation.responses.default?.content?.["application/json"]?.schema ?? {};
      if (operation.parameters.length > 0) {
        const refused = await ask(`${server.url}${path}?nonsense=1`);
        expect([path, refused.status]).toEqual([path, 400]);
        expect(checkOf(error)(refused.body)).toBe(true);
      }
    }
    expect(answers).toBeGreaterThan(9);
    expect(checkOf({ $ref: "#/components/schemas/FleetDiffJson" })({ schema: "other" })).toBe(
      false,
    );
  });
});

describe("diff", () => {
  const version = (name: string) => `{service_name="shop", version="${name}"}`;
  test("of two versions, for each instance", async () => {
    const query = { left: version("41"), right: version("42") };
    const { left, right, stacks, other, limits } = await get<FleetDiffJson>("diff", query);
    expect([left.instances, right.instances]).toEqual([expect.closeTo(2, 1), expect.closeTo(1, 1)]);
    expect(leaves(stacks)).toEqual(["cache", "load"]);
    const [cache, load] = stacks;
    expect((cache?.left ?? 0) / MIB).toBeCloseTo(2, 1);
    expect((cache?.right ?? 0) / MIB).toBeCloseTo(25, 1);
    expect((load?.change ?? 1) / MIB).toBeCloseTo(0, 1);
    const sum = stacks.reduce((all, { change }) => all + change, other.change);
    expect(sum).toBeCloseTo(right.total - left.total, 3);
    expect(limits).toEqual([]);
  });

  test("as sums; what is left out is exact", async () => {
    const query = { left: version("41"), right: version("42"), per: "none", top: "1" };
    const { left, right, stacks, other } = await get<FleetDiffJson>("diff", query);
    expect(left.total / MIB).toBeCloseTo(24, 1);
    expect(stacks).toHaveLength(1);
    expect(other.stacks).toBe(1);
    expect((stacks[0]?.change ?? 0) + other.change).toBeCloseTo(right.total - left.total, 3);
  });

  test("of two times, and of an instance against its siblings", async () => {
    const all = '{service_name="shop", version="42"}';
    const times = await get<FleetDiffJson>("diff", {
      ...{ left: all, right: all, leftTo: String(START + 100 * SECOND) },
      rightFrom: String(START + 300 * SECOND),
    });
    expect((times.stacks[0]?.change ?? 0) / MIB).toBeCloseTo(30, 1);
    const odd = streamName(streams[2] ?? Buffer.alloc(0));
    const siblings = await get<FleetDiffJson>("diff", {
      left: `{service_name="shop", __stream__!="${odd}"}`,
      right: `{__stream__="${odd}"}`,
    });
    expect(leaves(siblings.stacks)[0]).toBe("cache");
    expect(siblings.left.instances).toBeCloseTo(2, 1);
  });

  test("of two versions that nobody runs is empty, with the reason", async () => {
    const { stacks, limits } = await get<FleetDiffJson>("diff", {
      left: version("1"),
      right: version("2"),
    });
    expect([stacks, limits.length]).toEqual([[], 2]);
  });

  test.each([
    [{ left: "shop" }, /cannot be read/],
    [{ left: '{a=~"("}' }, /not a regular expression/],
    [{ left: "{}", leftFrom: "9", leftTo: "3" }, /ends before it begins/],
    [{ left: "{}", per: "person" }, /per is not one of none, instance/],
    [{ left: "{}", top: "0" }, /top is not a whole number/],
    [{}, /left is missing/],
  ])("%j is refused in one line", async (query, expected) => {
    const { error } = await get<{ error: string }>("diff", { ...query, right: "{}" } as Record<
      string,
      string
    >);
    expect(error).toMatch(expected);
    expect(error).not.toContain("\n");
  });
});

test("growing compares the first and the last quarter", async () => {
  const answer = await get<GrowingJson>("growing", { service: "shop", version: "42" });
  expect(leaves(answer.stacks)).toEqual(["cache", "load"]);
  const [cache, load] = answer.stacks;
  expect((cache?.earlyBytes ?? 0) / MIB).toBeCloseTo(10, 1);
  expect((cache?.lateBytes ?? 0) / MIB).toBeCloseTo(40, 1);
  // 30 MiB in 300 s.
  expect((cache?.growthBytesPerHour ?? 0) / MIB).toBeCloseTo(30 * 12, -1);
  expect((load?.growthBytesPerHour ?? 1) / MIB).toBeCloseTo(0, 0);
  // In these profiles everything is at most half a second old, so it only counts in a window that short.
  expect(cache?.survivedBytes).toBe(0);
  const short = {
    from: String(START + 300 * SECOND - 1000),
    to: String(START + 300 * SECOND + 1000),
  };
  const moment = await get<GrowingJson>("growing", { service: "shop", version: "42", ...short });
  expect(moment.stacks.find(({ stack }) => stack[0]?.function === "cache")?.survivedBytes).toBe(
    40 * MIB,
  );
});

test("verdicts are those of the instances", async () => {
  const { verdicts } = await get<FleetVerdictsJson>("verdicts", {});
  expect(verdicts.map(({ service, isRunning }) => [service, isRunning])).toEqual(
    Array.from({ length: 3 }, () => ["shop", false]),
  );
  const kind = verdicts[0]?.kind ?? "";
  const some = await get<FleetVerdictsJson>("verdicts", { kind });
  expect(some.verdicts.length).toBeGreaterThan(0);
  expect(new Set(some.verdicts.map((row) => row.kind))).toEqual(new Set([kind]));
  expect((await get<FleetVerdictsJson>("verdicts", { kind: "'" })).verdicts).toEqual([]);
});

test("diagnoses are of services, and name what is too little for a verdict", async () => {
  const { diagnoses } = await get<FleetDiagnosesJson>("diagnoses", {});
  expect(diagnoses.map(({ service }) => service)).toEqual(["shop"]);
  expect(diagnoses[0]?.verdict.kind).toBe("insufficient-evidence");
  expect(diagnoses[0]?.verdict.summary).toBe(
    "Version 42 of shop has not run long enough for the fleet's verdict.",
  );
  expect(await get("diagnoses", { service: "'" })).toMatchObject({
    what: "no service is called '",
  });
  const long = { from: "0", to: "1000" };
  expect((await get<FleetDiagnosesJson>("diagnoses", long)).diagnoses).toEqual([]);
  const refused = await ask(`${server.url}/api/v1/diagnoses?top=3`);
  expect([refused.status, refused.body]).toEqual([
    400,
    expect.objectContaining({ error: expect.stringContaining("unknown parameter top") }),
  ]);
});

describe("fleet", () => {
  const fleet = (...words: string[]) =>
    execute([tidemark, "fleet", ...words, "--server", server.url]);

  test("diff, growing and verdicts in text and JSON", async () => {
    const words = ["diff", "shop@41", "shop@42"];
    const text = (await fleet(...words)).stdout;
    expect(text).toMatch(/A {2}\{service_name="shop", version="41"\} .* instances/);
    expect(text).toMatch(/\+.* MiB .*cache/);
    expect(validate((await fleet(...words, "--json")).stdout, "fleet_diff")).toBeDefined();
    const growing = await fleet("growing", "shop");
    expect(growing.stdout).toMatch(/TOTAL GROWTH[\s\S]*MiB\/h .*cache/);
    expect(validate((await fleet("growing", "shop", "--json")).stdout, "growing")).toBeDefined();
    const ofInstances = ["verdicts", "--by", "instance"];
    expect((await fleet(...ofInstances)).stdout).toMatch(/SERVICE +VERSION[\s\S]*shop/);
    expect(
      validate((await fleet(...ofInstances, "--json")).stdout, "fleet_verdicts"),
    ).toBeDefined();
    const ago = await fleet("diff", "shop", "--ago", "24h");
    expect(ago.stdout).toContain("No process");
  });

  test.each([
    [["diff", "shop"], /two selections, or one and --ago/],
    [["diff", "shop", "shop", "--ago", "1h"], /two selections, or one and --ago/],
    [["diff", "a", "b", "c"], /at most 2: c/],
    [["growing"], /needs the name of a service; as in: tidemark fleet growing checkout/],
    [["profile", "shop", "--for", "2s"], /takes a time from 10s to 1h with --for; as in: tidemark/],
    [["verdicts", "shop", "shop"], /takes at most 1: shop/],
    [["verdicts", "shop", "--by", "instance"], /--by instance takes no name/],
    [["growing", "nobody"], /no service is called nobody/],
    [["endpoints", "nobody"], /no service is called nobody/],
    [["diff", "shop@41", "shop@99"], /no process is stored that .*version="99"/],
    [["endpoints"], /as in: tidemark fleet endpoints checkout/],
    [["diff", "shop", "shap"], /no service is called shap; did you mean shop\?$/m],
    [["diff", "shop@4", "shop@42"], /the version 4; its versions: 41, 42$/m],
    ...[
      "service",
      "growing",
      "endpoints",
      "verdicts",
      "sizes",
      "actions",
      "requests",
      "profile",
    ].map((question): [string[], RegExp] => [
      [question, "shopp"],
      /^tidemark: TM-E014 no service is called shopp; did you mean shop\?\n$/,
    ]),
    [["verdicts", "nobody"], /no service is called nobody; list them: tidemark fleet services/],
    [
      ["services", "--since", "900d"],
      /--since must be above zero and at most 730 days; as in: .* services --since 24h\n$/,
    ],
    [["growing", "shop", "--since", "0s"], /--since takes a duration such as 30s/],
    [["diff", "shop", "--ago", "900d"], /--ago must be above zero and at most 730 days/],
  ])("%j is refused", async (words, expected) => {
    const { status, stderr } = await fleet(...words);
    expect([status, stderr]).toEqual([2, expect.stringMatching(expected)]);
  });
});
