/**
 * Memory control groups, versions 1 and 2 (Documentation/admin-guide/cgroup-v1/memory.rst, cgroup-v2.rst). The
 * effective limit is the smallest one among the process's group and its ancestors. The nearest group with that
 * limit also has the relevant usage and events.
 */
import { present } from "../../model/base/present.js";
import type { Bytes, Pid } from "../../model/base/units.js";
import { readFolders, readText } from "./proc_files.js";
import type { ReadText, RecentTexts } from "./recent_texts.js";

export interface CgroupMemory {
  /** Directory of the group with the effective limit, or of the process's own group if there is no limit. */
  readonly directory: string;
  /** null if there is no limit. */
  readonly limitBytes: Bytes | null;
  /**
   * Smallest `memory.high` of the group and its ancestors: above it, the kernel throttles the processes and reclaims
   * their memory, but kills none. null if there is none, and in version 1, whose `memory.soft_limit_in_bytes` throttles
   * nothing: the kernel reclaims above it only while the machine is short of memory.
   */
  readonly highBytes: Bytes | null;
  readonly usageBytes: Bytes;
  /**
   * Number of its processes that were killed because it was out of memory; null if the kernel does not count
   * them.
   */
  readonly oomKills: number | null;
  /** How often the group of `highBytes` was throttled, and how often the group reached its limit. */
  readonly highEvents: number | null;
  readonly maxEvents: number | null;
}

/** Where a process's memory group is mounted: `directories` lead from its own group up to the root of the mount. */
export interface CgroupPlace {
  readonly version: 1 | 2;
  readonly directories: readonly string[];
}

/** Finds the group once; {@link readLimiting} then reads it repeatedly. `read`: of files that several processes share. */
export function findCgroup(pid: Pid, read: ReadText = readText): CgroupPlace | null {
  const membership = readText(`/proc/${pid}/cgroup`);
  const mounts = read("/proc/self/mountinfo");
  return membership === null || mounts === null ? null : knownPlace(membership, mounts);
}

/** Most processes of a host are in few groups. */
const MOST_PLACES = 1_000;
/** By text of /proc/PID/cgroup, as long as the mounts stay the same. */
const places = new Map<string, CgroupPlace | null>();
let placedMounts = "";

function knownPlace(membership: string, mounts: string): CgroupPlace | null {
  if (mounts !== placedMounts || places.size > MOST_PLACES) {
    places.clear();
    placedMounts = mounts;
  }
  let place = places.get(membership);
  if (place === undefined) {
    place = placeOf(membership, mounts, ownGroupBelow);
    places.set(membership, place);
  }
  return place;
}

/**
 * From the texts of /proc/PID/cgroup and mountinfo. With a private cgroup namespace, both paths are relative to this
 * process's group: "/../pod2/app" is below its parent. If the host's tree is mounted, `ownBelow` finds this process's
 * group in it: its path below a mount point, or null.
 */
export function placeOf(
  membership: string,
  mounts: string,
  ownBelow: (point: string) => string | null = () => null,
): CgroupPlace | null {
  const groups = parseMembership(membership);
  for (const version of [1, 2] as const) {
    const path = version === 1 ? groups.get("memory") : groups.get("");
    const mount = path === undefined ? null : findMount(mounts, version);
    if (path !== undefined && mount !== null) {
      return { version, directories: upwards(mount.point, insideOf(path, mount, ownBelow)) };
    }
  }
  return null;
}

/** The path below the mount point. */
function insideOf(
  path: string,
  { root, point }: { readonly root: string; readonly point: string },
  ownBelow: (point: string) => string | null,
): string {
  const [up, rest] = aboveOwn(path);
  const [mountUp, mountRest] = aboveOwn(root);
  if (mountUp > 0 && mountRest === "") {
    // The mount begins that many groups above ours. What lies between it and the process's path has no name here.
    const between = mountUp - up;
    if (between <= 0) {
      return rest;
    }
    const own = ownBelow(point)?.split("/").slice(1) ?? [];
    return `/${own.slice(0, between).join("/")}${rest}`;
  }
  if (path.startsWith(root === "/" ? "/" : `${root}/`)) {
    return path.slice(root === "/" ? 0 : root.length);
  }
  // The path is outside the mount, as in a container that sees only its own group: the root of the mount is our group.
  return "/";
}

/** How many groups above ours a path begins, and its rest: "/../../a" is 2 and "/a". */
function aboveOwn(path: string): readonly [up: number, rest: string] {
  const dots = /^(?:\/\.\.)*(?=\/|$)/.exec(path)?.[0] ?? "";
  return [dots.length / 3, path.slice(dots.length)];
}

/** Groups that are searched for this process's. */
const MOST_GROUPS = 20_000;
/** By mount point. */
const ownGroups = new Map<string, string | null>();

/** Path of this process's group below a mount point of the host's tree; null if none of its groups lists this process. */
function ownGroupBelow(point: string): string | null {
  const known = ownGroups.get(point);
  if (known !== undefined) {
    return known;
  }
  const pid = new RegExp(`^${process.pid}$`, "m");
  const folders = [""];
  let found: string | null = null;
  for (let n = 0; n < folders.length && n < MOST_GROUPS && found === null; n++) {
    const folder = folders[n] as string;
    if (pid.test(readText(`${point}${folder}/cgroup.procs`) ?? "")) {
      found = folder;
    }
    for (const name of readFolders(`${point}${folder}`)) {
      folders.push(`${folder}/${name}`);
    }
  }
  ownGroups.set(point, found);
  return found;
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

/** What `work` reads of a group: once for all programs in it that ask at the same moment. null if there is no group. */
export function ofGroup<Result>(
  place: CgroupPlace | null,
  texts: RecentTexts,
  work: (place: CgroupPlace, read: ReadText) => Result,
): Result | null {
  return place === null ? null : texts.worked(work, place, place.directories[0] ?? "");
}

/** Reads the group with the effective limit; null if the process's own group has no memory figures. */
export function readLimiting(place: CgroupPlace, read: ReadText = readText): CgroupMemory | null {
  const limitName = place.version === 2 ? "memory.max" : "memory.limit_in_bytes";
  const nearest = smallestOf(place, limitName, read);
  const high = place.version === 2 ? smallestOf(place, "memory.high", read) : null;
  const candidates = nearest ? [nearest.directory] : place.directories;
  for (const directory of candidates) {
    const usage = read(
      `${directory}/${place.version === 2 ? "memory.current" : "memory.usage_in_bytes"}`,
    );
    if (usage !== null) {
      return {
        directory,
        limitBytes: nearest?.bytes ?? null,
        highBytes: high?.bytes ?? null,
        usageBytes: Number(usage),
        ...(place.version === 2
          ? eventsOf(directory, high?.directory ?? directory, read)
          : killsOf(directory, read)),
      };
    }
  }
  return null;
}

/** The smallest value of this limit among a group and its ancestors, and the nearest group that has it. */
function smallestOf(
  { directories }: CgroupPlace,
  name: string,
  read: ReadText,
): { readonly directory: string; readonly bytes: Bytes } | null {
  let smallest: { directory: string; bytes: Bytes } | null = null;
  for (const directory of directories) {
    const bytes = parseLimit(read(`${directory}/${name}`));
    if (bytes !== null && (smallest === null || bytes < smallest.bytes)) {
      smallest = { directory, bytes };
    }
  }
  return smallest;
}

/**
 * Bytes that may still be charged to the group before the kernel kills: the minimum over the group and its
 * ancestors. File pages that the kernel would reclaim count as free. null if none of them has a limit.
 */
export function roomOf(
  { version, directories }: CgroupPlace,
  read: ReadText = readText,
): Bytes | null {
  const [limitName, usageName] =
    version === 2
      ? ["memory.max", "memory.current"]
      : ["memory.limit_in_bytes", "memory.usage_in_bytes"];
  let least: Bytes | null = null;
  for (const directory of directories) {
    const limit = parseLimit(read(`${directory}/${limitName}`));
    if (limit !== null) {
      const usage = Number(read(`${directory}/${usageName}`) ?? 0);
      const room = Math.max(0, limit - usage) + reclaimableBytes(directory, read);
      least = Math.min(least ?? room, room);
    }
  }
  return least;
}

/** File pages in memory, without those of tmpfs and shared memory. */
function reclaimableBytes(directory: string, read: ReadText): Bytes {
  const text = read(`${directory}/memory.stat`);
  const figure = (name: string) => count(text, `total_${name}`) ?? count(text, name) ?? 0;
  return figure("active_file") + figure("inactive_file");
}

/** "max" means no limit, and so does the largest multiple of a page in version 1. */
export function parseLimit(text: string | null): Bytes | null {
  const limit = text === null || text.trim() === "" ? Number.NaN : Number(text);
  return Number.isFinite(limit) && limit < 2 ** 62 ? limit : null;
}

type Events = Pick<CgroupMemory, "oomKills" | "highEvents" | "maxEvents">;

function eventsOf(directory: string, highDirectory: string, read: ReadText): Events {
  const text = read(`${directory}/memory.events`);
  return {
    oomKills: count(text, "oom_kill"),
    highEvents: count(read(`${highDirectory}/memory.events`), "high"),
    maxEvents: count(text, "max"),
  };
}

function killsOf(directory: string, read: ReadText): Events {
  const failures = read(`${directory}/memory.failcnt`);
  return {
    oomKills: count(read(`${directory}/memory.oom_control`), "oom_kill"),
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
