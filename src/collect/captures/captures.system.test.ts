/** A capture that fails halfway leaves nothing that is neither counted nor removed; a timed one starts in time or not. */
import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { Artifacts } from "../kept/artifacts.js";
import { boundsOf } from "../policy/bounds.js";
import { DEFAULT_POLICY } from "../policy/policy.js";
import type { Program } from "../policy/programs.js";
import { type CaptureEvent, Captures, type WantedCapture } from "./captures.js";

let folder = "";
let events: CaptureEvent[] = [];
let captures: Captures;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "tidemark-captures-"));
  events = [];
  captures = new Captures(new Artifacts(folder), (event) => events.push(event));
});
afterEach(async () => {
  await captures.close();
  rmSync(folder, { recursive: true });
});

const identity = { service: "shop", version: "", env: "" };
const program = {
  root: { identity, pid: 7, command: ["python"] },
  processes: [],
} as unknown as Program;
const bounds = boundsOf(DEFAULT_POLICY).captures;
const whys = () => events.map((event) => ("why" in event ? event.why : event.path));

const wanted = (reason: string, more: Partial<WantedCapture> = {}): WantedCapture => ({
  ...{ program, reason, captures: ["diagnose"], recording: null, lastMoment: false },
  ...more,
});

test("a recording that cannot be kept is named, and its folder is gone", async () => {
  const recording = join(folder, "gone.tidemark");
  captures.want(wanted("a test", { lastMoment: true, recording }), bounds, 0);
  captures.next(bounds, 0);
  await vi.waitUntil(() => events.length > 0, { timeout: 60_000 });
  expect(events).toMatchObject([
    { kind: "not-captured", why: expect.stringMatching(/^a test: .*(no such file|ENOENT)/) },
  ]);
  expect(readdirSync(join(folder, "artifacts"))).toEqual([]);
});

test("the last moment of a program is captured although its triggers have reached their limit", () => {
  const wants = (reason: string, lastMoment: boolean) =>
    captures.want(wanted(reason, { lastMoment }), { ...bounds, perHour: 1 }, 0);
  wants("limit 90 %", false);
  wants("limit 90 % again", false);
  wants("killed", true);
  wants("killed again", true);
  expect(whys()).toEqual([
    "limit 90 % again, but shop has reached its limit of captures in an hour (1)",
    "killed again, but shop has reached its limit of last moments in an hour (1)",
  ]);
});

test("a timed capture that another one delays is dropped with the reason, and none starts late", () => {
  const outcomes: unknown[] = [];
  captures.want(wanted("a trigger"), bounds, 0);
  captures.next(bounds, 0);
  const onDone = (outcome: unknown) => outcomes.push(outcome);
  captures.want(wanted("asked for now", { atMs: 1_000, onDone }), bounds, 1_000);
  captures.next(bounds, 11_000);
  expect(outcomes).toEqual([]);
  captures.next(bounds, 11_001);
  const why = "asked for now, but another capture was running until 10 s after it";
  expect(outcomes).toEqual([{ why }]);
  expect(whys()).toEqual([why]);
});

test.each([
  ["CPU credit", 0],
  ["no CPU credit", -1],
])(
  "with %s, a timed capture starts before those of ended programs that came later",
  async (_, cpu) => {
    captures.next({ ...bounds, cpu }, 0);
    captures.want(wanted("timed", { atMs: 20_000 }), bounds, 20_000);
    captures.want(wanted("a last moment", { lastMoment: true }), bounds, 20_000);
    captures.next({ ...bounds, cpu }, 20_000);
    await vi.waitUntil(() => events.length > 0, { timeout: 60_000 });
    expect(whys()).toEqual([expect.stringMatching(/^timed: /)]);
  },
);
