/** Which action is tried next, from the log alone. */
import { expect, test } from "vitest";
import type { ActionJson } from "../../model/documents/action_document.js";
import { ACTION_RULE, type ActionRule } from "../policy/action_form.js";
import { chooseAction } from "./choice_of_action.js";

const HOUR = 3_600_000;
const NOW = Date.UTC(2026, 10, 27, 12);
const SUBJECT = { service: "shop", version: "41", pid: 7, startedMs: NOW - 10 * HOUR };
const HOST_LIMIT = { count: 20, perMs: HOUR };

function ruleOf(settings: object): ActionRule {
  const rule = ACTION_RULE.parse({
    mode: "on",
    allow: ["gc_collect", "malloc_trim", { command: ["/bin/true"] }],
    ...settings,
  });
  if (rule === null) {
    throw new Error("actions are off");
  }
  return rule;
}

function acted(changes: Partial<ActionJson>): ActionJson {
  return {
    schema: "tidemark.action/1",
    ...{ id: "", service: "shop", version: "41", host: "a", pid: 7 },
    ...{ action: "gc_collect", what: "gc_collect", state: "done", reason: "" },
    ...{ why: "", outcome: "", evidence: "", timeMs: NOW - 2 * HOUR },
    ...changes,
  };
}

function chosen(log: readonly ActionJson[], settings: object = {}, hostLimit = HOST_LIMIT) {
  const { action, forbidden } = chooseAction(SUBJECT, ruleOf(settings), hostLimit, log, NOW);
  return { key: action?.key ?? null, forbidden };
}

test("actions are tried in their order, and one that never helped is not repeated on that version", () => {
  expect(chosen([])).toEqual({ key: "gc_collect", forbidden: "" });
  expect(chosen([acted({ helped: false })]).key).toBe("malloc_trim");
  // Another instance of the same version.
  expect(chosen([acted({ helped: false, pid: 8 })]).key).toBe("malloc_trim");
  expect(chosen([acted({ helped: false, version: "40" })]).key).toBe("gc_collect");
  expect(chosen([acted({ helped: false, service: "other" })]).key).toBe("gc_collect");
  expect(chosen([acted({ helped: false, timeMs: NOW - 200 * HOUR })]).key).toBe("gc_collect");
});

test("an action that helped is repeated once the others had their turn", () => {
  expect(chosen([acted({ helped: true })]).key).toBe("gc_collect");
  expect(chosen([acted({ helped: true, timeMs: NOW - 60_000 })]).key).toBe("malloc_trim");
  const once = acted({ helped: true, timeMs: NOW - 5 * HOUR });
  expect(chosen([once, acted({ helped: false, timeMs: NOW - 0.5 * HOUR })]).key).toBe(
    "malloc_trim",
  );
  expect(chosen([once, acted({ helped: false })]).key).toBe("gc_collect");
});

test("one that failed rests for an hour; when all rest, nothing is tried", () => {
  const failed = (what: string) => acted({ what, state: "failed", timeMs: NOW - 60_000 });
  expect(chosen([failed("gc_collect")]).key).toBe("malloc_trim");
  const all = ["gc_collect", "malloc_trim", "command true 88d6bd"].map(failed);
  expect(chosen(all)).toEqual({
    key: null,
    forbidden: "every allowed action has been tried already",
  });
});

test("limits count what was done to the instance, the service and the host; refusals do not count", () => {
  const others = (count: number, changes: Partial<ActionJson>) =>
    Array.from({ length: count }, () =>
      acted({ helped: true, timeMs: NOW - 60_000, pid: 8, ...changes }),
    );
  expect(chosen(others(4, {})).forbidden).toBe(
    "the limit 4/h of this service on this host is reached",
  );
  expect(chosen(others(4, {}), { service_limit: "9/h" }).forbidden).toBe("");
  expect(chosen(others(1, { pid: 7 }), { limit: "1/h" }).forbidden).toBe(
    "the limit 1/h of this instance is reached",
  );
  // The pid belonged to another process before.
  expect(chosen(others(1, { pid: 7, timeMs: NOW - 11 * HOUR }), { limit: "1/d" }).forbidden).toBe(
    "",
  );
  expect(chosen(others(20, { service: "other" })).forbidden).toBe(
    "the limit 20/h of this host is reached",
  );
  expect(chosen(others(20, { state: "refused" })).forbidden).toBe("");
  expect(chosen([], { limit: "0/h" }).forbidden).toContain("0/h");
});

test("a dry run is said once an hour", () => {
  const dry = { mode: "dry-run" };
  const said = acted({ state: "would-act", timeMs: NOW - 60_000 });
  expect(chosen([], dry).key).toBe("gc_collect");
  expect(chosen([said], dry)).toEqual({ key: null, forbidden: "" });
  expect(chosen([{ ...said, timeMs: NOW - 2 * HOUR }], dry).key).toBe("gc_collect");
});
