import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { itemAt } from "../../model/base/columns.js";
import { findCgroup, parseLimit, placeOf, readLimiting } from "./cgroup.js";

const MOUNTS_V2 = "30 23 0:26 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw\n";
const MOUNTS_V1 = `33 32 0:28 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu,cpuacct
35 32 0:30 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory
36 32 0:31 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw
`;

describe("the control group of a process", () => {
  test("version 2", () => {
    expect(placeOf("0::/user.slice/app.scope\n", MOUNTS_V2)).toEqual({
      version: 2,
      directories: [
        "/sys/fs/cgroup/user.slice/app.scope",
        "/sys/fs/cgroup/user.slice",
        "/sys/fs/cgroup",
      ],
    });
  });

  test("version 1, and both at once: the one with the memory controller", () => {
    expect(placeOf("5:memory:/docker/abc\n2:cpu,cpuacct:/x\n0::/\n", MOUNTS_V1)).toEqual({
      version: 1,
      directories: [
        "/sys/fs/cgroup/memory/docker/abc",
        "/sys/fs/cgroup/memory/docker",
        "/sys/fs/cgroup/memory",
      ],
    });
  });

  test("a container that has only its own group mounted", () => {
    const mounts = "35 32 0:30 /docker/abc /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory\n";
    expect(placeOf("5:memory:/docker/abc/inner\n", mounts)?.directories[0]).toBe(
      "/sys/fs/cgroup/memory/inner",
    );
    expect(placeOf("5:memory:/docker/abc\n", mounts)?.directories).toEqual([
      "/sys/fs/cgroup/memory",
    ]);
    expect(placeOf("5:memory:/docker/other\n", mounts)?.directories).toEqual([
      "/sys/fs/cgroup/memory",
    ]);
    expect(placeOf("0::/../../outside\n", MOUNTS_V2)?.directories[0]).toBe(
      "/sys/fs/cgroup/outside",
    );
  });

  test("a private cgroup namespace with the host's tree: the names between come from our own group", () => {
    const mounts = "30 23 0:26 /../../.. /sys/fs/cgroup ro - cgroup2 cgroup2 rw\n";
    const own = () => "/kubepods.slice/kubepods-podA.slice/cri-containerd-a.scope";
    const first = (path: string) => placeOf(`0::${path}\n`, mounts, own)?.directories[0];
    expect(first("/../../kubepods-podB.slice/cri-containerd-b.scope")).toBe(
      "/sys/fs/cgroup/kubepods.slice/kubepods-podB.slice/cri-containerd-b.scope",
    );
    expect(first("/../cri-containerd-c.scope")).toBe(
      "/sys/fs/cgroup/kubepods.slice/kubepods-podA.slice/cri-containerd-c.scope",
    );
    expect(first("/../../../system.slice/shop.service")).toBe(
      "/sys/fs/cgroup/system.slice/shop.service",
    );
    expect(first("/")).toBe(
      "/sys/fs/cgroup/kubepods.slice/kubepods-podA.slice/cri-containerd-a.scope",
    );
    expect(first("/..x")).toMatch(/a\.scope\/\.\.x$/);
  });

  test("a mount point with a space", () => {
    expect(
      placeOf("0::/a\n", "30 23 0:26 / /sys/fs/c\\040group rw - cgroup2 c rw\n")?.directories[0],
    ).toBe("/sys/fs/c group/a");
  });

  test("none", () => {
    expect(placeOf("2:cpu:/x\n", itemAt(MOUNTS_V1.split("\n"), 0))).toBeNull();
    expect(placeOf("", "")).toBeNull();
  });
});

describe("the effective limit", () => {
  let root: string;
  beforeEach(() => {
    root = mkdtempSync(join(tmpdir(), "tidemark-cgroup-"));
  });
  afterEach(() => rmSync(root, { recursive: true, force: true }));

  function group(path: string, files: Readonly<Record<string, string>>): string {
    const directory = join(root, path);
    mkdirSync(directory, { recursive: true });
    for (const [name, text] of Object.entries(files)) {
      writeFileSync(join(directory, name), text);
    }
    return directory;
  }

  test("the smallest limit among the ancestors, with that group's figures", () => {
    const leaf = group("pod/app", {
      "memory.max": "max\n",
      "memory.current": "100\n",
      "memory.events": "oom_kill 9\n",
    });
    const pod = group("pod", {
      "memory.max": "5000\n",
      "memory.current": "400\n",
      "memory.events": "low 0\nhigh 3\nmax 4\noom 2\noom_kill 1\n",
    });
    const top = group("", { "memory.max": "9000\n", "memory.current": "800\n" });
    expect(readLimiting({ version: 2, directories: [leaf, pod, top] })).toEqual({
      directory: pod,
      limitBytes: 5000,
      highBytes: null,
      usageBytes: 400,
      oomKills: 1,
      highEvents: 3,
      maxEvents: 4,
    });
  });

  test("the smallest memory.high among the ancestors, with that group's throttlings", () => {
    const leaf = group("slice/app", {
      "memory.max": "5000\n",
      "memory.high": "max\n",
      "memory.current": "400\n",
      "memory.events": "high 0\nmax 4\noom_kill 1\n",
    });
    const slice = group("slice", {
      "memory.max": "max\n",
      "memory.high": "4096\n",
      "memory.events": "high 12\nmax 0\noom_kill 7\n",
    });
    const top = group("", { "memory.max": "max\n", "memory.high": "8192\n" });
    const place = { version: 2, directories: [leaf, slice, top] } as const;
    const both = { directory: leaf, highBytes: 4096, highEvents: 12, oomKills: 1 };
    expect(readLimiting(place)).toMatchObject({ ...both, limitBytes: 5000, maxEvents: 4 });
    writeFileSync(join(leaf, "memory.max"), "max\n");
    expect(readLimiting(place)).toMatchObject({ ...both, limitBytes: null });
  });

  test("no limit: the own group's figures", () => {
    const leaf = group("app", {
      "memory.max": "max\n",
      "memory.current": "100\n",
      "memory.events": "oom_kill 0\n",
    });
    expect(readLimiting({ version: 2, directories: [leaf, root] })).toMatchObject({
      directory: leaf,
      limitBytes: null,
      highBytes: null,
      usageBytes: 100,
    });
  });

  test("version 1: its soft limit throttles nothing, so it is not memory.high", () => {
    const leaf = group("app", {
      "memory.soft_limit_in_bytes": "512\n",
      "memory.limit_in_bytes": "2048\n",
      "memory.usage_in_bytes": "1024\n",
      "memory.failcnt": "7\n",
      "memory.oom_control": "oom_kill_disable 0\nunder_oom 0\noom_kill 2\n",
    });
    expect(readLimiting({ version: 1, directories: [leaf] })).toEqual({
      directory: leaf,
      limitBytes: 2048,
      highBytes: null,
      usageBytes: 1024,
      oomKills: 2,
      highEvents: null,
      maxEvents: 7,
    });
  });

  test("a control group that was removed", () => {
    expect(readLimiting({ version: 2, directories: [join(root, "gone")] })).toBeNull();
  });

  test("values that are not a limit", () => {
    expect([
      parseLimit("max\n"),
      parseLimit("9223372036854771712\n"),
      parseLimit(null),
      parseLimit(""),
    ]).toEqual([null, null, null, null]);
    expect(parseLimit("4096\n")).toBe(4096);
  });
});

describe("this process", () => {
  test("its own group, as its files have it", () => {
    const place = findCgroup(process.pid);
    const memory = place && readLimiting(place);
    if (place && memory) {
      expect(place.directories).toContain(memory.directory);
      const name = place.version === 2 ? "memory.current" : "memory.usage_in_bytes";
      const usage = Number(readFileSync(join(memory.directory, name), "utf8"));
      expect(Math.abs(usage - memory.usageBytes)).toBeLessThan(2 ** 30);
    }
    expect(findCgroup(2 ** 22 + 1)).toBeNull();
  });
});
