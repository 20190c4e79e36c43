/**
 * Sites as people look for them: under the line of their own program that led to the allocation,
 * with the library's leaf beside it. Stacks that share both become one row.
 */

import { homedir } from "node:os";
import { basename, relative } from "node:path";
import type { FrameJson, SummarySiteJson } from "../../model/documents.js";
import { ownFrame } from "../../model/own_code.js";
import type { Bytes, Objects } from "../../model/units.js";

/** A figure and its standard error. */
export interface Estimate {
  readonly bytes: Bytes;
  readonly standardErrorBytes: Bytes;
}

export interface SiteGroup {
  /** The frame nearest to the leaf that is the user's own; the leaf where there is none. */
  readonly headline: FrameJson;
  /** What was called from there and allocated; null where the headline is the leaf. */
  readonly leaf: FrameJson | null;
  readonly domain: SummarySiteJson["domain"];
  readonly live: Estimate;
  readonly atPeak: Estimate;
  readonly allocated: Estimate;
  readonly liveObjects: Objects;
}

/** Groups sites by headline, leaf and domain. The order is that of the groups' first sites. */
export function groupSites(sites: readonly SummarySiteJson[]): SiteGroup[] {
  const groups = new Map<string, SummarySiteJson[]>();
  for (const site of sites) {
    const key = groupKey({ ...splitStack(site.stack), domain: site.domain });
    const group = groups.get(key);
    if (group) {
      group.push(site);
    } else {
      groups.set(key, [site]);
    }
  }
  return [...groups.values()].map((members) => {
    const first = members[0] as SummarySiteJson;
    return {
      ...splitStack(first.stack),
      domain: first.domain,
      live: addUp(members, (site) => [site.liveBytes, site.standardErrorBytes]),
      atPeak: addUp(members, (site) => [site.liveBytesAtPeak, site.standardErrorAtPeakBytes]),
      allocated: addUp(members, (site) => [site.allocatedBytes, site.standardErrorAllocatedBytes]),
      liveObjects: members.reduce((sum, site) => sum + site.liveObjects, 0),
    };
  });
}

/** The same for the same place and allocator at another look. */
export function groupKey({
  headline,
  leaf,
  domain,
}: Pick<SiteGroup, "headline" | "leaf" | "domain">): string {
  return JSON.stringify([frameKey(headline), leaf && frameKey(leaf), domain]);
}

/** Sum of independent estimates: their variances add. */
export function addUp<Item>(
  items: readonly Item[],
  figures: (item: Item) => readonly [bytes: Bytes, standardError: Bytes],
): Estimate {
  let bytes = 0;
  let variance = 0;
  for (const item of items) {
    const [value, error] = figures(item);
    bytes += value;
    variance += error * error;
  }
  return { bytes, standardErrorBytes: Math.sqrt(variance) };
}

const UNKNOWN_FRAME: FrameJson = { function: "(no Python stack)", file: "", line: 0, kind: "mark" };

export function splitStack(stack: readonly FrameJson[]): {
  readonly headline: FrameJson;
  readonly leaf: FrameJson | null;
} {
  const leaf = stack.find((frame) => !isInterpreterFrame(frame)) ?? stack[0] ?? UNKNOWN_FRAME;
  const own = ownFrame(stack);
  const headline = own?.kind === "python" ? own : leaf;
  return { headline, leaf: headline === leaf ? null : leaf };
}

/** CPython's own C code and the agent's hook in it: how memory is asked for tells not who asks. */
function isInterpreterFrame(frame: FrameJson): boolean {
  return (
    frame.kind === "native" &&
    /^(?:libtidemark(?:-keyed)?\.so|libpython3[\w.]*\.so.*|python3?(?:\.\d+)?)$/.test(
      basename(frame.file),
    )
  );
}

function frameKey(frame: FrameJson): unknown[] {
  return [frame.function, frame.file, frame.line, frame.kind];
}

/** "app.py:41", "numpy/lib/npyio.py:123", "libtorch_cpu.so": as short as it stays clear. */
export function placeOf(frame: FrameJson): string {
  if (frame.file === "") {
    return "";
  }
  const file = frame.kind === "native" ? objectName(frame.file) : shortPath(frame.file);
  return frame.line > 0 ? `${file}:${frame.line}` : file;
}

/** "_multiarray_umath.so": without the tag that says for which interpreter it was built. */
function objectName(path: string): string {
  return basename(path).replace(/\.(?:cpython-\w+(?:-\w+)*|abi3)\.so$/, ".so");
}

/** Name for people: native frames without a symbol show their address's object alone. */
export function functionOf(frame: FrameJson): string {
  return frame.function === "" ? "(no symbol)" : frame.function;
}

/** Inside a package directory, the current directory or the home: told from there. */
export function shortPath(path: string): string {
  const installed =
    /[/\\](?:site|dist)-packages[/\\](.+)$/.exec(path) ??
    /[/\\]lib(?:64)?[/\\]python\d(?:\.\d+)?t?[/\\](.+)$/.exec(path);
  if (installed?.[1] !== undefined) {
    return installed[1];
  }
  if (!path.startsWith("/")) {
    return /^<frozen (.+)>$/.exec(path)?.[1] ?? path;
  }
  const here = relative(process.cwd(), path);
  if (here !== "" && !here.startsWith("..")) {
    return here;
  }
  const home = homedir();
  return home !== "/" && path.startsWith(`${home}/`) ? `~${path.slice(home.length)}` : path;
}

/** What `--filter` looks at: every name of the row. */
export function groupText(group: SiteGroup): string {
  return [group.headline, group.leaf ?? group.headline]
    .map((frame) => `${frame.function} ${frame.file}:${frame.line}`)
    .join(" ");
}
