/** Holder lookups of a recording as evidence. */

import type { StackId } from "../../model/base/units.js";
import type { HolderJson } from "../../model/documents/diagnosis_document.js";
import type { FrameJson } from "../../model/documents/documents.js";
import type { HolderLookup, Putter } from "../../recording/types.js";
import type { Evidence, HolderEvidence } from "./evidence.js";
import { shortPath } from "./short_path.js";

/** The spread of entries that grow is about 1, that of entries that are created whole near 0. */
const SPREAD_OF_GROWING = 0.5;

/** `framesOf`: the frames of a stack in the dictionary, if there is one. */
export function holderEvidenceOf(
  lookups: readonly HolderLookup[],
  framesOf: (stack: StackId) => readonly FrameJson[] = () => [],
): Required<Pick<Evidence, "holders" | "collectors">> {
  return {
    holders: lookups.flatMap((lookup) => holdersOf(lookup, framesOf)),
    collectors: lookups.flatMap(({ pid, collector }) => (collector ? [{ pid, ...collector }] : [])),
  };
}

function holdersOf(
  { pid, rows }: HolderLookup,
  framesOf: (stack: StackId) => readonly FrameJson[],
): HolderEvidence[] {
  return rows.map(
    ({
      site,
      foundMs,
      madeAt,
      looked,
      held,
      garbage,
      graph,
      bound,
      putters,
      unreferenced,
      entrySpread,
      ...row
    }) => ({
      pid,
      site,
      foundMs,
      madeAt: madeAt === null ? [] : framesOf(madeAt),
      looked,
      held,
      garbage,
      graph,
      unreferenced: unreferenced ?? null,
      holder: row.path.length === 0 ? null : holderJson({ ...row, foundMs }, putters),
      entriesGrow: entrySpread === undefined ? null : entrySpread >= SPREAD_OF_GROWING,
      callers: putters.length === 1 ? (putters[0] as Putter).callers : [],
      bound: bound > 0 ? bound : null,
    }),
  );
}

function holderJson(
  {
    path,
    type,
    retainedBytes,
    entries,
    foundMs,
  }: Pick<HolderLookup["rows"][number], "path" | "type" | "retainedBytes" | "entries" | "foundMs">,
  putters: readonly Putter[],
): HolderJson {
  const frames = putters.map(({ function: name, file, line }) => ({
    function: name,
    file,
    line,
    kind: "python" as const,
  }));
  return {
    path: shortPath(path),
    type,
    retainedBytes,
    entries,
    atMs: foundMs,
    ...(frames.length === 0 ? {} : { putters: frames }),
  };
}
