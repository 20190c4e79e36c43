/** Leases: one at a time in a service, within limits, never by a request that was made before. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import type { ActionJson } from "../../model/documents/action_document.js";
import { ActionBook } from "./action_book.js";
import { USUAL_ACTION_LIMITS } from "./action_limits.js";

const NOW = Date.UTC(2026, 10, 27, 12);
const MINUTE = 60_000;
let folder = "";
let book: ActionBook;
let next = 0;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "tidemark-actions-"));
  book = new ActionBook(folder, (text) => expect.unreachable(text));
});
afterEach(() => rmSync(folder, { recursive: true }));

function wanted(changes: Partial<ActionJson> = {}): ActionJson {
  next += 1;
  return {
    schema: "tidemark.action/1",
    id: `00000000-0000-4000-8000-${String(next).padStart(12, "0")}`,
    ...{ service: "shop", version: "41", host: "a", pid: 7, timeMs: NOW },
    ...{ action: "gc_collect", what: "gc_collect", state: "running", reason: "it is full" },
    ...{ why: "", outcome: "", evidence: "" },
    ...changes,
  };
}

function ask(action: ActionJson, nowMs = NOW): string {
  const answer = book.lease(action, USUAL_ACTION_LIMITS, nowMs);
  return answer.granted ? "" : answer.why;
}

test("one action at a time in a service, until it is reported to be over or its lease lapses", () => {
  const first = wanted();
  expect(ask(first)).toBe("");
  expect(ask(wanted({ host: "b" }))).toBe("gc_collect is running on process 7 of a");
  expect(ask(wanted({ service: "other" }))).toBe("");
  expect(book.report({ ...first, state: "done", helped: true })).toBe("");
  expect(ask(wanted({ host: "b" }))).toBe("");
  const later = NOW + 91 * MINUTE;
  expect(ask(wanted({ host: "c", timeMs: later }), later)).toBe("");
  const { actions } = book.document(USUAL_ACTION_LIMITS, "shop", later);
  expect(actions.map(({ state, host }) => [state, host])).toEqual([
    ["running", "c"],
    ["done", "a"],
    ["failed", "b"],
  ]);
});

test("a request that is repeated gets no second lease, also after a restart of the server", () => {
  const first = wanted();
  expect(ask(first)).toBe("");
  expect(ask(first)).toBe("");
  expect(ask({ ...first, pid: 8 })).toBe("this request was made before");
  book.report({ ...first, state: "done" });
  expect(ask(first)).toBe("this request was made before");
  book = new ActionBook(folder, (text) => expect.unreachable(text));
  expect(ask(first)).toBe("this request was made before");
  expect(ask(wanted({ timeMs: NOW - 6 * MINUTE }))).toContain("the request is old");
  expect(ask(wanted({ timeMs: NOW + 6 * MINUTE }))).toContain("the request is old");
});

test("an eviction: of the pod of a running lease, once, also after a restart of the server", () => {
  const pod = { namespace: "shop", name: "checkout-1", uid: "1" };
  const action = wanted({ action: "evict_pod", what: "evict_pod", pod });
  expect(ask(action)).toBe("");
  expect(ask({ ...action, pod: { ...pod, uid: "2" } })).toBe("this request was made before");
  expect(book.evict(action.id, { ...pod, uid: "2" }, NOW)).toContain("another pod");
  expect(book.evict(action.id, pod, NOW + 91 * MINUTE)).toContain("it is over");
  expect(book.evict(action.id, pod, NOW)).toBe("");
  expect(book.report(action)).toBe("");
  book = new ActionBook(folder, (text) => expect.unreachable(text));
  expect(book.evict(action.id, pod, NOW)).toBe("this request was made before");
  const done = { ...action, state: "done" as const, beforeBytes: 9, afterBytes: 0, helped: true };
  expect(book.report({ ...done, pod: { ...pod, name: "other" } })).toContain("names another one");
  expect(book.report(done)).toBe("");
  expect(book.report({ ...done, hourLaterBytes: 3 })).toBe("");
  expect(book.evict(action.id, pod, NOW)).toContain("it is over");
});

test("an eviction that was asked for counts, whatever its collector reports; one that was refused does not", () => {
  const pod = { namespace: "shop", name: "checkout-1", uid: "1" };
  const evict = () => {
    const action = wanted({ action: "evict_pod", what: "evict_pod", pod });
    expect(ask(action)).toBe("");
    expect(book.evict(action.id, pod, NOW)).toBe("");
    return action;
  };
  const refused = evict();
  book.evictionRefused(refused.id);
  expect(book.report({ ...refused, state: "refused", why: "a disruption budget" })).toBe("");
  for (let count = 0; count < 4; count++) {
    const state = count % 2 === 0 ? "refused" : "would-act";
    expect(book.report({ ...evict(), state, why: "no" })).toBe("");
  }
  expect(ask(wanted())).toBe("the limit 4/h of a service is reached");
});

test("limits of a service and of the fleet", () => {
  for (let count = 0; count < 4; count++) {
    const action = wanted();
    expect(ask(action)).toBe("");
    book.report({ ...action, state: "failed", why: "no" });
  }
  expect(ask(wanted())).toBe("the limit 4/h of a service is reached");
  for (let count = 0; count < 16; count++) {
    expect(ask(wanted({ service: `service ${count}` }))).toBe("");
  }
  expect(ask(wanted({ service: "last" }))).toBe("the limit 20/h of all services is reached");
  expect(ask(wanted({ timeMs: NOW + 61 * MINUTE }), NOW + 61 * MINUTE)).toBe("");
});

test("reports: only of what was granted, about the same action, and not after its end", () => {
  const action = wanted();
  expect(book.report({ ...action, state: "done" })).toBe("no lease was granted for this action");
  expect(book.report(wanted({ state: "would-act" }))).toBe("");
  expect(book.report(wanted({ state: "refused", why: "limit" }))).toBe("");
  ask(action);
  expect(book.report({ ...action, service: "other", state: "done" })).toContain(
    "names another one",
  );
  const done = { ...action, state: "done" as const, beforeBytes: 9, afterBytes: 5, helped: true };
  expect(book.report(done)).toBe("");
  expect(book.report(done)).toBe("");
  expect(book.report({ ...done, state: "running" })).toBe("this action is over");
  expect(book.report({ ...done, afterBytes: 1, hourLaterBytes: 3 })).toBe("this action is over");
  expect(book.report({ ...done, hourLaterBytes: 3 })).toBe("");
  expect(book.report({ ...done, hourLaterBytes: 4 })).toBe("this action is over");
});
