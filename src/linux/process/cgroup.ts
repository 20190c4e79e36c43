/**
 * Memory control groups, versions 1 and 2 (Documentation/admin-guide/cgroup-v1/memory.rst, cgroup-v2.rst). The
 * effective limit is the smallest one among the process's group and its ancestors. The nearest group with that
 * limit also has the relevant usage and events. This file also finds the container of a process's group.
 */
import { present } from "../../model/base/present.js";
import type { Bytes, Pid } from "../../model/base/units.js";
import { readText } from "./proc_files.js";

export interface CgroupMemory {
  /** Directory of the group with the effective limit, or of the process's own group if there is no limit. */
  readonly directory: string;
  /** null if there is no limit. */
  readonly limitBytes: Bytes | null;
  readonly usageBytes: Bytes;
  /**
   * Number of its processes that were killed because it was out of memory; null if the kernel does not count
   * them.
   */
  readonly oomKills: number | null;
  /** How often the group was throttled at `memory.high`, and how often it reached its limit. */
  readonly highEvents: number | null;
  readonly maxEvents: number | null;
}

/** Where a process's memory group is mounted: `directories` lead from its own group up to the root of the mount. */
export interface CgroupPlace {
  readonly version: 1 | 2;
  readonly directories: readonly string[];
}

/** Finds the group once; {@link readLimiting} then reads it repeatedly. */
export function findCgroup(pid: Pid): CgroupPlace | null {
  const membership = readText(`/proc/${pid}/cgroup`);
  const mounts = readText("/proc/self/mountinfo");
  return membership === null || mounts === null ? null : placeOf(membership, mounts);
}

/** From the texts of /proc/PID/cgroup and mountinfo. */
export function placeOf(membership: string, mounts: string): CgroupPlace | null {
  const groups = parseMembership(membership);
  for (const version of [1, 2] as const) {
    const path = version === 1 ? groups.get("memory") : groups.get("");
    const mount = path === undefined ? null : findMount(mounts, version);
    if (path !== undefined && mount !== null) {
      const inside = path.startsWith(mount.root === "/" ? "/" : `${mount.root}/`)
        ? path.slice(mount.root === "/" ? 0 : mount.root.length)
        : path === mount.root
          ? "/"
          : null;
      // The path is outside the mount, as in a container that sees only its own group: the root of the mount is
      // our group.
      return { version, directories: upwards(mount.point, inside ?? "/") };
    }
  }
  return null;
}

/** Controller -> path; "" stands for the single hierarchy of version 2. */
function parseMembership(text: string): Map<string, string> {
  const groups = new Map<string, string>();
  for (const line of text.split("\n")) {
    const match = /^\d+:([^:]*):(.*)$/.exec(line);
    if (match) {
      for (const controller of present(match[1]).split(",")) {
        groups.set(controller, present(match[2]));
      }
    }
  }
  return groups;
}

function findMount(mountinfo: string, version: 1 | 2): { root: string; point: string } | null {
  for (const line of mountinfo.split("\n")) {
    const [before, after] = line.split(" - ");
    const fields = before?.split(" ") ?? [];
    const [type, , options] = after?.split(" ") ?? [];
    const right =
      version === 2
        ? type === "cgroup2"
        : type === "cgroup" && (options ?? "").split(",").includes("memory");
    if (right && fields[3] !== undefined && fields[4] !== undefined) {
      return { root: unescapeMount(fields[3]), point: unescapeMount(fields[4]) };
    }
  }
  return null;
}

/** mountinfo writes space, tab, newline and backslash as \ooo. */
function unescapeMount(text: string): string {
  return text.replace(/\\([0-7]{3})/g, (_, octal: string) =>
    String.fromCharCode(Number.parseInt(octal, 8)),
  );
}

function upwards(point: string, inside: string): string[] {
  const parts = inside.split("/").filter((part) => part !== "" && part !== "..");
  const directories: string[] = [];
  for (let length = parts.length; length >= 0; length--) {
    directories.push([point, ...parts.slice(0, length)].join("/"));
  }
  return directories;
}

/** Reads the group with the effective limit; null if the process's own group has no memory figures. */
export function readLimiting(place: CgroupPlace): CgroupMemory | null {
  const limitName = place.version === 2 ? "memory.max" : "memory.limit_in_bytes";
  let nearest: { directory: string; limitBytes: Bytes } | null = null;
  for (const directory of place.directories) {
    const limit = parseLimit(readText(`${directory}/${limitName}`));
    if (limit !== null && (nearest === null || limit < nearest.limitBytes)) {
      nearest = { directory, limitBytes: limit };
    }
  }
  const candidates = nearest ? [nearest.directory] : place.directories;
  for (const directory of candidates) {
    const usage = readText(
      `${directory}/${place.version === 2 ? "memory.current" : "memory.usage_in_bytes"}`,
    );
    if (usage !== null) {
      return {
        directory,
        limitBytes: nearest?.limitBytes ?? null,
        usageBytes: Number(usage),
        ...(place.version === 2 ? eventsOf(directory) : killsOf(directory)),
      };
    }
  }
  return null;
}

/**
 * Bytes that may still be charged to the group before the kernel kills: the minimum over the group and its
 * ancestors. File pages that the kernel would reclaim count as free. null if none of them has a limit.
 */
export function roomOf({ version, directories }: CgroupPlace): Bytes | null {
  const [limitName, usageName] =
    version === 2
      ? ["memory.max", "memory.current"]
      : ["memory.limit_in_bytes", "memory.usage_in_bytes"];
  let least: Bytes | null = null;
  for (const directory of directories) {
    const limit = parseLimit(readText(`${directory}/${limitName}`));
    if (limit !== null) {
      const usage = Number(readText(`${directory}/${usageName}`) ?? 0);
      const room = Math.max(0, limit - usage) + reclaimableBytes(directory);
      least = Math.min(least ?? room, room);
    }
  }
  return least;
}

/** File pages in memory, without those of tmpfs and shared memory. */
function reclaimableBytes(directory: string): Bytes {
  const text = readText(`${directory}/memory.stat`);
  const figure = (name: string) => count(text, `total_${name}`) ?? count(text, name) ?? 0;
  return figure("active_file") + figure("inactive_file");
}

/** "max" means no limit, and so does the largest multiple of a page in version 1. */
export function parseLimit(text: string | null): Bytes | null {
  const limit = text === null || text.trim() === "" ? Number.NaN : Number(text);
  return Number.isFinite(limit) && limit < 2 ** 62 ? limit : null;
}

type Events = Pick<CgroupMemory, "oomKills" | "highEvents" | "maxEvents">;

function eventsOf(directory: string): Events {
  const text = readText(`${directory}/memory.events`);
  return {
    oomKills: count(text, "oom_kill"),
    highEvents: count(text, "high"),
    maxEvents: count(text, "max"),
  };
}

function killsOf(directory: string): Events {
  const failures = readText(`${directory}/memory.failcnt`);
  return {
    oomKills: count(readText(`${directory}/memory.oom_control`), "oom_kill"),
    highEvents: null,
    maxEvents: failures === null ? null : Number(failures),
  };
}

function count(text: string | null, name: string): number | null {
  const found = new RegExp(`^${name} (\\d+)$`, "m").exec(text ?? "");
  return found ? Number(found[1]) : null;
}

/**
 * File pages that are charged to a control group; the argument is the directory from {@link CgroupMemory}. null
 * if the kernel does not report it. Source: memory.stat of version 2 ("file") and 1 ("total_cache").
 */
export function readPageCache(directory: string): Bytes | null {
  const text = readText(`${directory}/memory.stat`) ?? "";
  const found = /^(?:file|total_cache) (\d+)$/m.exec(text);
  return found ? Number(found[1]) : null;
}

/** The container's id, otherwise the pod's uid, from a process's cgroup; "" if it is in no container or has ended. */
export function readContainer(pid: Pid): string {
  return containerOf(readText(`/proc/${pid}/cgroup`) ?? "");
}

/**
 * From the text of /proc/PID/cgroup. Container runtimes put 64 hex digits in the path
 * (docker-<id>.scope, cri-containerd-<id>.scope, /docker/<id>, /kubepods/.../<id>), Kubernetes the
 * pod's uid (pod<uid>, with _ for - under systemd), LXC and systemd-nspawn a name.
 */
export function containerOf(cgroup: string): string {
  const id = /(?:^|[/:-])([0-9a-f]{64})(?:\.scope)?(?:$|\/)/m.exec(cgroup)?.[1];
  if (id !== undefined) {
    return id;
  }
  const pod = /pod([0-9a-f]{8}(?:[-_][0-9a-f]{4}){3}[-_][0-9a-f]{12})/.exec(cgroup)?.[1];
  if (pod !== undefined) {
    return pod.replaceAll("_", "-");
  }
  return (
    /\/(?:lxc(?:\.payload)?[./]|machine-)([^/\n]+?)(?:\.(?:scope|service))?(?:$|\/)/m.exec(
      cgroup,
    )?.[1] ?? ""
  );
}
