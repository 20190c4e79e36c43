/** Processes become programs, and the first rule that matches a program decides. */
import { expect, test } from "vitest";
import type { ScannedProcess } from "../linux/index.js";
import { identityOf } from "../model/wire/identity.js";
import { policyOf } from "./policy.js";
import { fits, programsOf, ruleFor } from "./programs.js";

function python(
  pid: number,
  parentPid: number,
  service: string,
  more: Partial<ScannedProcess> = {},
) {
  return {
    pid,
    parentPid,
    key: `${pid}:1:python`,
    uid: 0,
    interpreter: { version: "3.12.1", linking: "static", debug: false, freeThreaded: false },
    command: ["python", `${service}.py`],
    container: "",
    rssBytes: 10,
    pssBytes: 0,
    ussBytes: 0,
    threads: 1,
    startTicks: 1,
    attach: { ok: true, reason: "", remedy: "" },
    identity: identityOf({ TIDEMARK_SERVICE: service }, "python"),
    ...more,
  } satisfies ScannedProcess;
}

const shape = (processes: ScannedProcess[]) =>
  programsOf(processes).map(({ root, processes: all, rssBytes, hasOthersBelow }) => [
    root.pid,
    all.map(({ pid }) => pid),
    rssBytes,
    hasOthersBelow,
  ]);

test("a master and its workers are one program, whatever the order of their pids", () => {
  const workers = [python(3, 9, "shop"), python(12, 9, "shop"), python(13, 12, "shop")];
  expect(shape([...workers, python(9, 1, "shop")])).toEqual([[9, [9, 3, 12, 13], 40, false]]);
});

test("another service below is a program of its own, and so is another container", () => {
  const tree = [python(5, 1, "supervisor"), python(6, 5, "shop"), python(7, 6, "shop")];
  expect(shape(tree)).toEqual([
    [5, [5], 10, true],
    [6, [6, 7], 20, false],
  ]);
  expect(shape([python(5, 1, "a"), python(6, 5, "a", { container: "f00" })])).toHaveLength(2);
});

test("a circle of parents, as torn readings may show it, ends", () => {
  expect(shape([python(5, 6, "a"), python(6, 5, "a")]).flatMap(([, pids]) => pids)).toHaveLength(2);
});

test("the first rule that matches decides; without one, every program may have the agent", () => {
  const policy = policyOf(
    `select:
  - match: {service: "check*", labels: {track: canary}}
    agent: {share: 10%, most: 3}
  - match: {service: checkout}
    watch: never
`,
    "policy.yaml",
  );
  const [shop] = programsOf([python(1, 0, "shop")]);
  const [checkout] = programsOf([python(1, 0, "checkout")]);
  const identity = identityOf(
    { TIDEMARK_SERVICE: "checkout", OTEL_RESOURCE_ATTRIBUTES: "track=canary" },
    "x",
  );
  const [canary] = programsOf([python(1, 0, "checkout", { identity })]);
  expect(ruleFor(canary as never, policy)).toMatchObject({ number: 1, share: 0.1, most: 3 });
  expect(ruleFor(checkout as never, policy)).toMatchObject({ number: 2, watch: "never" });
  expect(ruleFor(shop as never, policy)).toMatchObject({ number: null, watch: "agent", share: 1 });
});

test("a pattern's stars stand for any text, and a long hostile one is no burden", () => {
  expect(fits("celery beat -A shop", "*celery beat*")).toBe(true);
  expect(fits("checkout", "check*")).toBe(true);
  expect(fits("checkout", "check")).toBe(false);
  expect(fits("aa", "a*a")).toBe(true);
  expect(fits("a", "a*a")).toBe(false);
  expect(fits("a".repeat(100_000), `${"*a".repeat(400)}*b`)).toBe(false);
});
