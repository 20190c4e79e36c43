/** A capture that fails halfway leaves nothing that is neither counted nor removed. */
import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test, vi } from "vitest";
import { Artifacts } from "../kept/artifacts.js";
import { boundsOf } from "../policy/bounds.js";
import { DEFAULT_POLICY } from "../policy/policy.js";
import type { Program } from "../policy/programs.js";
import { type CaptureEvent, Captures } from "./captures.js";

test("a recording that cannot be kept is named, and its folder is gone", async () => {
  const folder = mkdtempSync(join(tmpdir(), "tidemark-captures-"));
  const events: CaptureEvent[] = [];
  const captures = new Captures(new Artifacts(folder), (event) => events.push(event));
  const identity = { service: "shop", version: "", env: "" };
  const program = { root: { identity, pid: 7, command: ["python"] }, processes: [] };
  const bounds = boundsOf(DEFAULT_POLICY).captures;
  captures.want(
    {
      program: program as unknown as Program,
      ...{ reason: "a test", captures: ["diagnose"], lastMoment: true },
      recording: join(folder, "gone.tidemark"),
    },
    bounds,
    0,
  );
  captures.next(bounds, 0);
  await vi.waitUntil(() => events.length > 0);
  expect(events).toMatchObject([
    { kind: "not-captured", why: expect.stringMatching(/^a test: .*(no such file|ENOENT)/) },
  ]);
  expect(readdirSync(join(folder, "artifacts"))).toEqual([]);
  rmSync(folder, { recursive: true });
});
