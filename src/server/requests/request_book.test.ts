/** What is written of requests, and when; and how much of it stays. */
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { RequestBook } from "./request_book.js";

let folder = "";
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "tidemark-requests-"));
});
afterEach(() => rmSync(folder, { recursive: true }));

const book = () => new RequestBook(folder, (text) => expect(text).toBe(""));
const hostsIn = (one: RequestBook) => one.document(undefined).requests[0]?.hosts ?? [];

test("answers are not written one by one; a restart keeps them, and the request without them", () => {
  const now = Date.now();
  const first = book();
  const request = first.add({ service: "shop", forMs: 60_000 }, now);
  const id = typeof request === "string" ? "" : request.id;
  rmSync(join(folder, "requests.json"));
  for (let host = 0; host < 100; host++) {
    const answers = [{ id, programs: host % 2, why: "w".repeat(2_000) }];
    expect(first.answered({ host: `host-${host}`, answers }, now)).toBe(true);
    expect(first.answered({ host: `host-${host}`, answers }, now)).toBe(false);
  }
  expect(existsSync(join(folder, "requests.json"))).toBe(false);
  first.close();
  const again = book();
  expect(hostsIn(again)).toEqual(hostsIn(first));
  expect(hostsIn(again)).toHaveLength(100);
  expect(hostsIn(again)[0]?.why).toHaveLength(500);
});

test("a person's request is not held up by one that names a few programs, and holds up others", () => {
  const now = Date.now();
  const one = book();
  const named = { service: "shop", forMs: 60_000, programs: [{ host: "here", pid: 1 }] };
  expect(one.add(named, now)).toMatchObject({ programs: [{ host: "here", pid: 1 }] });
  expect(one.add(named, now)).toMatch(/already requested/);
  expect(one.add({ service: "shop", forMs: 60_000 }, now)).toMatchObject({ service: "shop" });
  expect(one.add({ service: "shop", forMs: 60_000 }, now)).toMatch(/already requested/);
  one.close();
});

test("an answer to a short request counts that arrives after its end, and not long after", () => {
  const now = Date.now();
  const one = book();
  const request = one.add({ service: "shop", forMs: 20_000 }, now);
  const id = typeof request === "string" ? "" : request.id;
  const answers = [{ id, programs: 1, why: "" }];
  expect(one.open(now + 25_000)).toEqual([]);
  expect(one.answered({ host: "here", answers }, now + 25_000)).toBe(true);
  expect(one.answered({ host: "there", answers }, now + 120_000)).toBe(false);
  expect(hostsIn(one)).toEqual([{ host: "here", programs: 1, why: "" }]);
  one.close();
});

test("of a request that has ended, some hosts stay: those with programs", () => {
  const long = Date.now() - 120_000;
  const one = book();
  const request = one.add({ service: "shop", forMs: 60_000 }, long);
  const id = typeof request === "string" ? "" : request.id;
  for (let host = 0; host < 100; host++) {
    one.answered(
      { host: `host-${host}`, answers: [{ id, programs: Number(host >= 90), why: "" }] },
      long,
    );
  }
  one.add({ service: "other", forMs: 60_000 }, Date.now());
  const { hosts = [] } = one.document("shop").requests[0] ?? {};
  expect(hosts).toHaveLength(20);
  expect(hosts.filter(({ programs }) => programs > 0)).toHaveLength(10);
  one.close();
});
