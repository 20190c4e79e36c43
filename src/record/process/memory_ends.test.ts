import { describe, expect, test } from "vitest";
import { memoryEndSentence } from "../../model/profile/memory_end.js";
import { groupsAtLimit, killedByCounters, stoppedByRlimit } from "./memory_ends.js";

const MIB = 2 ** 20;
const ended = {
  pid: 42,
  timeMs: 1_700_000_000_000,
  last: {
    rssBytes: 300 * MIB,
    vmsBytes: 420 * MIB,
    vmPeakBytes: 425 * MIB,
    vmDataBytes: 310 * MIB,
  },
  maxRssBytes: 340 * MIB,
};
const machine = { totalBytes: 8192 * MIB, usedBytes: 4096 * MIB };

describe("killed, by the counters alone", () => {
  const group = (limitMib: number) => ({
    directory: "/sys/fs/cgroup/app",
    limitBytes: limitMib * MIB,
    usedBytes: 2 * MIB,
    peakBytes: 398 * MIB,
    kills: 1,
    failures: 9,
  });

  test("a container whose group disappeared with it: its pod's counters show that its limit was reached", () => {
    const container = {
      ...group(400),
      directory: "/pod/container",
      kills: 0,
      peakBytes: 200 * MIB,
    };
    const pod = { ...group(0), directory: "/pod", limitBytes: null, kills: 0 };
    const after = { ...pod, kills: 3, failures: 14 };
    const end = killedByCounters(ended, groupsAtLimit([container, pod], [after]), machine);
    expect(end).toMatchObject({
      ...{ cause: "cgroup", limit: "/pod/container" },
      ...{ limitBytes: 400 * MIB, usedBytes: 400 * MIB },
    });
    // The pod itself was full.
    const full = { ...after, limitBytes: 500 * MIB, peakBytes: 500 * MIB };
    const both = groupsAtLimit([container, { ...pod, limitBytes: 500 * MIB }], [full]);
    expect(killedByCounters(ended, both, machine).limit).toBe("/pod");
    // No limit was reached: the machine was out of memory.
    const counted = groupsAtLimit([container, pod], [{ ...pod, kills: 1 }]);
    expect(killedByCounters(ended, counted, machine).cause).toBe("machine");
  });

  test("a group at its limit", () => {
    const end = killedByCounters(ended, [group(400)], machine);
    expect(memoryEndSentence(end, 42)).toBe(
      "The program was killed by the OOM killer of its control group: limit 400 MiB, 398 MiB used, 340 MiB resident in the process",
    );
  });

  test("a group below its limit: the machine was out of memory", () => {
    const end = killedByCounters(ended, [group(4000)], machine);
    expect(end.cause).toBe("machine");
    expect(memoryEndSentence(end, 1)).toMatch(/^Its process 42 was killed by the OOM killer: the/);
  });
});

describe("an error at an rlimit", () => {
  const limits = { addressSpaceBytes: 512 * MIB, dataBytes: null };
  const failed = { exitCode: 1, signal: null };

  test("of the address space, with what came after the last poll", () => {
    expect(stoppedByRlimit(ended, limits, failed, undefined)).toMatchObject({
      limit: "RLIMIT_AS",
      usedBytes: 460 * MIB,
      limitBytes: 512 * MIB,
    });
  });

  test("where nobody knows how it ended, only at the limit itself", () => {
    expect(stoppedByRlimit(ended, limits, null, undefined)).toBeNull();
    const at = { ...limits, addressSpaceBytes: 420 * MIB };
    const evidence = [
      expect.stringMatching(/^It ended at (?:9\d|100) % of RLIMIT_AS \(420 MiB\): /),
    ];
    expect(stoppedByRlimit({ ...ended, maxRssBytes: 0 }, at, null, undefined)).toMatchObject({
      evidence,
    });
  });

  test("there is none if the program succeeded, was terminated, or was far from the limit", () => {
    expect(stoppedByRlimit(ended, limits, { exitCode: 0, signal: null }, undefined)).toBeNull();
    expect(stoppedByRlimit(ended, limits, { exitCode: null, signal: 15 }, undefined)).toBeNull();
    expect(
      stoppedByRlimit(ended, { ...limits, addressSpaceBytes: 4096 * MIB }, failed, undefined),
    ).toBeNull();
  });

  const request = {
    bytes: 210 * MIB,
    timeMs: ended.timeMs - 400,
    addressSpaceBytes: 512 * MIB,
    dataBytes: null,
  };

  test("an allocation that its agent saw fail right before, however near the limit was", () => {
    const nothing = { rssBytes: 0, vmsBytes: 0, vmPeakBytes: 0, vmDataBytes: 0 };
    const young = { ...ended, last: nothing, maxRssBytes: 0 };
    // Nobody read its limits or knows how it ended.
    const end = stoppedByRlimit(young, undefined, null, request);
    expect(end).toMatchObject({
      ...{ cause: "rlimit", limit: "RLIMIT_AS", limitBytes: 512 * MIB, usedBytes: 0 },
      failedBytes: 210 * MIB,
      evidence: [
        "It ended, 0.4 s after an allocation of 210 MiB had failed within RLIMIT_AS (512 MiB).",
      ],
    });
    expect(end === null ? "" : memoryEndSentence(end, 42)).toBe(
      "The program ended right after an allocation of 210 MiB had failed: RLIMIT_AS 512 MiB",
    );
    // Of two limits, the one that was nearer.
    const both = { ...request, dataBytes: 320 * MIB };
    expect(stoppedByRlimit(ended, limits, failed, both)).toMatchObject({ limit: "RLIMIT_DATA" });
  });

  test("an allocation that failed long before, without a limit, or in a program that went on and succeeded, is no reason", () => {
    const earlier = { ...request, timeMs: ended.timeMs - 60_000 };
    expect(stoppedByRlimit(ended, limits, failed, earlier)).toBeNull();
    const unlimited = { ...request, addressSpaceBytes: null };
    expect(stoppedByRlimit(ended, undefined, failed, unlimited)).toBeNull();
    expect(stoppedByRlimit(ended, limits, { exitCode: 0, signal: null }, request)).toBeNull();
  });

  test("where its agent saw none fail, only at the limit itself", () => {
    expect(stoppedByRlimit(ended, limits, failed, null)).toBeNull();
    // What became resident after the last poll may have been mapped before.
    const touched = { ...ended, maxRssBytes: 440 * MIB };
    expect(stoppedByRlimit(touched, limits, failed, null)).toBeNull();
    expect(stoppedByRlimit(touched, limits, failed, undefined)).toMatchObject({ cause: "rlimit" });
    const at = { ...limits, addressSpaceBytes: 430 * MIB };
    expect(stoppedByRlimit(ended, at, failed, null)).toMatchObject({ limit: "RLIMIT_AS" });
  });
});
