/** Processes become programs, and the first rule that matches a program decides. */
import { expect, test } from "vitest";
import type { ScannedProcess } from "../../linux/index.js";
import { fits } from "../../model/settings/pattern.js";
import { identityOf } from "../../model/wire/identity.js";
import { policyOf } from "./policy.js";
import { isInWindow, programsOf, ruleFor } from "./programs.js";

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
    containers: [],
    declared: identityOf({ TIDEMARK_SERVICE: service }, ""),
    name: "python",
    rssBytes: 10,
    pssBytes: 0,
    ussBytes: 0,
    threads: 1,
    startTicks: 1,
    stackStart: pid,
    attach: { ok: true, reason: "", remedy: "" },
    identity: identityOf({ TIDEMARK_SERVICE: service }, "python"),
    startedMs: 0,
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

test("workers that run code of the program that started them belong to it, unless they name another service", () => {
  const workers = [
    "from multiprocessing.spawn import spawn_main; spawn_main(tracker_fd=6, pipe_handle=8) --multiprocessing-fork",
    "from multiprocessing.resource_tracker import main;main(5)",
    "import sys;exec(eval(sys.stdin.readline()))",
  ].map((code, i) => {
    const none = { declared: identityOf({}, ""), identity: identityOf({}, "python3") };
    return python(20 + i, 9, "", {
      ...none,
      command: ["/usr/bin/python3", "-s", "-X", "dev", "-c", code],
    });
  });
  const loky = python(30, 9, "", {
    declared: identityOf({}, ""),
    identity: identityOf({}, "joblib.externals.loky.backend.popen_loky_posix"),
    command: ["python3.12", "-m", "joblib.externals.loky.backend.popen_loky_posix", "--pipe", "7"],
  });
  const module = python(31, 9, "", {
    declared: identityOf({}, ""),
    identity: identityOf({}, "ipykernel_launcher"),
    command: ["python3", "-m", "ipykernel_launcher", "-c", "x"],
  });
  const other = python(32, 9, "other", { command: ["python3", "-c", "serve()"] });
  const root = python(9, 1, "shop");
  expect(shape([root, ...workers, loky, module, other])).toEqual([
    [9, [9, 20, 21, 22, 30], 50, true],
    [31, [31], 10, false],
    [32, [32], 10, false],
  ]);
});

test("another service below is a program of its own, and so is another container", () => {
  const tree = [python(5, 1, "supervisor"), python(6, 5, "shop"), python(7, 6, "shop")];
  expect(shape(tree)).toEqual([
    [5, [5], 10, true],
    [6, [6, 7], 20, false],
  ]);
  expect(shape([python(5, 1, "a"), python(6, 5, "a", { container: "f00" })])).toHaveLength(2);
});

test("a forked worker belongs to its master, whatever title it gave itself", () => {
  const stackStart = 0x7ffc_1234_5670;
  const tree = [
    python(5, 1, "gunicorn: master", { stackStart }),
    python(6, 5, "gunicorn: worker", { stackStart }),
    python(7, 6, "other"),
  ];
  expect(shape(tree)).toEqual([
    [5, [5, 6], 20, true],
    [7, [7], 10, false],
  ]);
  const unknown = tree.map((process) => ({ ...process, stackStart: 0 }));
  expect(shape(unknown)).toHaveLength(3);
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

test("a canary has the agent whatever the share", () => {
  const policy = policyOf(
    'select: [{match: {}, agent: {share: 0%, canary: {labels: {track: "can*"}}}}]',
    "policy.yaml",
  );
  const share = (labels: string) => {
    const identity = identityOf({ OTEL_RESOURCE_ATTRIBUTES: labels }, "x");
    const [program] = programsOf([python(1, 0, "x", { identity })]);
    return ruleFor(program as never, policy).share;
  };
  expect([share("track=canary"), share("track=stable"), share("")]).toEqual([1, 0, 0]);
});

test("a window is the same every day, and may pass midnight", () => {
  const at = (hour: number, minute: number) => new Date(2026, 10, 26, hour, minute);
  const night = { fromMinute: 23 * 60, untilMinute: 60 };
  expect([isInWindow(night, at(23, 0)), isInWindow(night, at(0, 59))]).toEqual([true, true]);
  expect([isInWindow(night, at(1, 0)), isInWindow(night, at(22, 59))]).toEqual([false, false]);
  const short = { fromMinute: 120, untilMinute: 130 };
  expect([isInWindow(short, at(2, 9)), isInWindow(short, at(2, 10))]).toEqual([true, false]);
  expect(isInWindow(null, at(12, 0))).toBe(true);
});
