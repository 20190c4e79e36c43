import { describe, expect, test } from "vitest";
import { kernelKillsOf } from "./kernel_kills.js";

/** Records as /dev/kmsg returns them, one second apart. */
const log = (lines: readonly string[]) =>
  lines.map((line, i) => `6,${i},${(i + 1) * 1_000_000},-;${line}\n SUBSYSTEM=none\n`).join("");

describe("kills of the kernel log", () => {
  test("in a control group, as 6.x and 5.x write them", () => {
    const [kill] = kernelKillsOf(
      log([
        "python3 invoked oom-killer: gfp_mask=0xcc0(GFP_KERNEL), order=0, oom_score_adj=0",
        "memory: usage 65536kB, limit 65536kB, failcnt 293",
        "oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=/,mems_allowed=0,oom_memcg=/app,task_memcg=/app/w,task=python3,pid=91,uid=0",
        "Memory cgroup out of memory: Killed process 91 (python3) total-vm:75160kB, anon-rss:65152kB, file-rss:6664kB, shmem-rss:0kB, UID:0 pgtables:184kB oom_score_adj:0",
      ]),
    );
    expect(kill).toEqual({
      pid: 91,
      atMs: 4000,
      cause: "cgroup",
      group: "/app",
      limitBytes: 65536 * 1024,
      usedBytes: 65536 * 1024,
      rssBytes: (65152 + 6664) * 1024,
    });
  });

  test("in a control group, as 4.x writes them", () => {
    const [kill, ...others] = kernelKillsOf(
      log([
        "python3 invoked oom-killer: gfp_mask=0x14000c0(GFP_KERNEL), nodemask=(null), order=0, oom_score_adj=0",
        "Task in /docker/ab killed as a result of limit of /docker/ab",
        "memory: usage 409600kB, limit 409600kB, failcnt 58",
        "Memory cgroup out of memory: Kill process 7 (my (app) x) score 990 or sacrifice child",
        "Killed process 7 (my (app) x) total-vm:500000kB, anon-rss:400000kB, file-rss:10kB, shmem-rss:0kB",
      ]),
    );
    expect(others).toEqual([]);
    expect(kill).toMatchObject({
      pid: 7,
      cause: "cgroup",
      group: "/docker/ab",
      limitBytes: 409600 * 1024,
    });
  });

  test("of the whole machine, after one in a group", () => {
    const kills = kernelKillsOf(
      log([
        "memory: usage 10kB, limit 10kB, failcnt 1",
        "Memory cgroup out of memory: Killed process 1 (a) total-vm:1kB, anon-rss:1kB, file-rss:0kB, shmem-rss:0kB",
        "b invoked oom-killer: gfp_mask=0x0, order=0, oom_score_adj=0",
        "oom-kill:constraint=CONSTRAINT_NONE,nodemask=(null),cpuset=/,mems_allowed=0,global_oom,task_memcg=/x,task=b,pid=2,uid=0",
        "Out of memory: Killed process 2 (b) total-vm:9kB, anon-rss:8kB, file-rss:0kB, shmem-rss:1kB",
      ]),
    );
    expect(kills.map(({ pid, cause, limitBytes }) => [pid, cause, limitBytes])).toEqual([
      [1, "cgroup", 10240],
      [2, "machine", 0],
    ]);
  });
});
