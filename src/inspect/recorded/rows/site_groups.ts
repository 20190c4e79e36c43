/**
 * Sites grouped by the line of the user's own program that led to the allocation, and by the library's leaf.
 * Stacks that share both form one group.
 */

import { basename } from "node:path";
import { itemAt } from "../../../model/base/columns.js";
import type { Bytes, Objects } from "../../../model/base/units.js";
import type { FrameJson, SummarySiteJson } from "../../../model/documents/documents.js";
import { ownFrame } from "../../../model/documents/own_code.js";
import { isNotebookCell, readableFile } from "../../../model/profile/frame_text.js";

/** A figure and its standard error. */
export interface Estimate {
  readonly bytes: Bytes;
  readonly standardErrorBytes: Bytes;
}

export interface SiteGroup {
  /** The user's own frame nearest to the leaf; the leaf if there is none. */
  readonly headline: FrameJson;
  /** The frame that allocated; null if the headline is the leaf. */
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
    const first = itemAt(members, 0);
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

/** Identifies the same place and allocator in another snapshot. @internal */
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

/** CPython's own C code and the agent's hook, which are on the stack of every allocation. */
function isInterpreterFrame(frame: FrameJson): boolean {
  return (
    frame.kind === "native" &&
    /^(?:libtidemark(?:-keyed)?\.so|libpython3[\w.]*\.so.*|python3?(?:\.\d+)?)$/.test(
      basename(frame.file),
    )
  );
}

/** A Jupyter kernel compiles each cell under its own file name; cells that would be listed alike count as one place. */
function frameKey(frame: FrameJson): unknown[] {
  const file = isNotebookCell(frame.file) ? readableFile(frame.file) : frame.file;
  return [frame.function, file, frame.line, frame.kind];
}
