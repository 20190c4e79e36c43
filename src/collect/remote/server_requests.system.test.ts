/** A server that repeats an old answer, or sends nonsense, starts nothing again. */
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, expect, test } from "vitest";
import { monotonicMs } from "../../linux/this_process/clock.js";
import { hostName } from "../../linux/this_process/host_name.js";
import { ServerRequests } from "./server_requests.js";

let server: Server;
afterEach(() => {
  server.closeAllConnections();
  server.close();
});

async function requestsTo(answer: () => { status?: number; body: unknown }) {
  const calls: unknown[] = [];
  server = createServer((incoming, outgoing) => {
    let text = "";
    incoming.on("data", (chunk: Buffer) => {
      text += chunk.toString();
    });
    incoming.on("end", () => {
      calls.push(JSON.parse(text));
      const { status = 200, body } = answer();
      outgoing.writeHead(status, { "content-type": "application/json" });
      outgoing.end(typeof body === "string" ? body : JSON.stringify(body));
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const requests = new ServerRequests({ url, token: null }, new AbortController().signal);
  let clock = 0;
  return {
    requests,
    calls,
    async asked() {
      clock += 60_000;
      requests.next(clock);
      await requests.close();
    },
  };
}

const ID = "00000000-0000-4000-8000-000000000001";
const request = { id: ID, service: "shop", timeMs: 1_000_000, untilMs: 1_060_000, by: "" };

test("a request ends by the time of its first arrival, and an answer that is repeated starts nothing", async () => {
  const body = { nowMs: 1_000_000, policy: null, requests: [request] };
  const { requests, calls, asked } = await requestsTo(() => ({ body }));
  await asked();
  const now = monotonicMs();
  expect(requests.open(now)).toMatchObject([{ id: ID, service: "shop", forMs: 60_000 }]);
  requests.answer(ID, 2, "");
  await asked();
  expect(calls.at(-1)).toMatchObject({ answers: [{ id: ID, programs: 2, why: "" }] });
  expect(requests.open(now + 61_000)).toEqual([]);
  const [first] = requests.open(now);
  await asked();
  expect(requests.open(now)).toEqual([first]);
});

test("the outcome of a request that ended before the next question is sent with it, and not for ever", async () => {
  const short = { ...request, untilMs: request.timeMs + 20_000 };
  const body = { nowMs: 1_000_000, policy: null, requests: [short] };
  const { requests, calls } = await requestsTo(() => ({ body }));
  const askAt = async (afterMs: number) => {
    requests.next(startMs + afterMs);
    await requests.close();
  };
  const startMs = monotonicMs();
  await askAt(0);
  requests.answer(ID, 1, "");
  await askAt(25_000);
  expect(calls.at(-1)).toMatchObject({ answers: [{ id: ID, programs: 1 }] });
  await askAt(90_000);
  expect(calls.at(-1)).toMatchObject({ answers: [] });
});

test("a server that cannot read its policy does not withdraw it; one without a policy does", async () => {
  let policy: string | null | undefined = "select: []";
  const { requests, asked } = await requestsTo(() => ({
    body: { nowMs: 0, policy, requests: [] },
  }));
  await asked();
  policy = undefined;
  await asked();
  expect(requests.policy).toBe("select: []");
  policy = null;
  await asked();
  expect(requests.policy).toBeNull();
});

test("a request may name programs; those of other hosts are not this one's", async () => {
  const programs = [
    { host: hostName(), pid: 11 },
    { host: `not-${hostName()}`, pid: 12 },
  ];
  const named = ["1", "2"].map((end, at) => ({
    ...{ ...request, id: ID.replace(/1$/, end), programs: programs.slice(at) },
  }));
  const body = { nowMs: 1_000_000, policy: null, requests: [], named };
  const { requests, asked } = await requestsTo(() => ({ body }));
  await asked();
  expect(requests.open(monotonicMs()).map(({ pids }) => pids)).toEqual([[11], []]);
});

test("a request that a newer server knows more about is left out, and the rest of the answer applies", async () => {
  const numbered = (n: number, more: object) => ({
    ...request,
    id: ID.replace(/1$/, String(n)),
    ...more,
  });
  const body = {
    ...{ nowMs: 1_000_000, policy: "select: []" },
    requests: [numbered(1, {}), numbered(2, { service: 7 })],
    named: [numbered(3, { programs: "the odd ones" })],
    captures: [
      numbered(4, { captures: { atMs: 1_030_000, what: ["gpu", "of the next version"] } }),
      numbered(5, { captures: { atMs: 1_030_000, what: ["gpu"] } }),
    ],
  };
  const { requests, asked } = await requestsTo(() => ({ body }));
  await asked();
  expect(requests.policy).toBe("select: []");
  expect(requests.open(monotonicMs()).map(({ id }) => id.slice(-1))).toEqual(["1", "5"]);
});

test("no request is longer than an hour", async () => {
  const body = { nowMs: 0, policy: null, requests: [{ ...request, untilMs: 1e12 }] };
  const { requests, asked } = await requestsTo(() => ({ body }));
  await asked();
  expect(requests.open(monotonicMs() + 3_600_000)).toEqual([]);
});

test.each([
  ["no JSON", { body: "<html>" }],
  ["another form", { body: { requests: "all" } }],
  ["too many", { body: { nowMs: 0, policy: null, requests: Array(21).fill(request) } }],
  ["a refusal", { status: 401, body: { nowMs: 1, policy: "x", requests: [request] } }],
  ["a huge policy", { body: { nowMs: 1, policy: "x".repeat(300_000), requests: [] } }],
])("%s changes nothing", async (_, answer) => {
  const { requests, asked } = await requestsTo(() => answer);
  await asked();
  expect([requests.open(0), requests.policy]).toEqual([[], null]);
});
