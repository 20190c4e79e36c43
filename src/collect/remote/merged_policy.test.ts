/** What a server's policy can set on a host, and what not. */
import { expect, test } from "vitest";
import { boundsOf } from "../policy/bounds.js";
import { DEFAULT_POLICY, policyOf } from "../policy/policy.js";
import { mergedPolicy } from "./merged_policy.js";

test("a server cannot have recordings or artifacts removed, or spend the host's disk and CPU", () => {
  const handed = `
defaults:
  {keep: 1s, disk: 1KiB, remote: false, actions: 0/h, warm_up: 5min, agents: 3, poll: 40s, turn: 2min,
   artifacts: {count: 0, keep: 1s, disk: 1KiB, cpu: 100%, max_pause: 1h, send: 0KiB, per_hour: 2}}
`;
  const usual = boundsOf(DEFAULT_POLICY);
  expect(boundsOf(mergedPolicy(DEFAULT_POLICY, handed))).toEqual({
    ...usual,
    ...{ warmUpMs: 300_000, agents: 3, pollMs: 40_000, turnMs: 120_000 },
    captures: { ...usual.captures, perHour: 2 },
  });
  const local = policyOf("defaults: {keep: 2d, poll: 30s, artifacts: {per_hour: 4}}", "local");
  const { keepMs, pollMs, captures } = boundsOf(mergedPolicy(local, handed));
  expect([keepMs, pollMs, captures.perHour]).toEqual([172_800_000, 30_000, 4]);
});

test.each(["poll: 1ms", "turn: 1ms"])("a server's %s is refused", (setting) => {
  expect(() => mergedPolicy(DEFAULT_POLICY, `defaults: {${setting}}`)).toThrow(/invalid|expected/);
});
