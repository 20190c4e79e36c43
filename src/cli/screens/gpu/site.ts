/** A site of device memory as text for one row: the user's own line, and the function it called. */

import type { FrameJson } from "../../../model/documents/documents.js";
import { isOwnFrame } from "../../../model/gpu/gpu_frame_roles.js";
import { functionOf, placeOf } from "../sites.js";

/** "cs336_basics/optimizer.py:75": a snapshot may come from another machine, so its paths need not exist here. */
function shortPlace(frame: FrameJson): string {
  if (frame.file === "??") {
    return "";
  }
  return placeOf(frame).replace(/^.*[/\\](?=[^/\\]*[/\\][^/\\]*$)/, "");
}

/**
 * "forward model.py:41 (empty_strided)": the nearest frame of the program's own code, and the leaf if that is a
 * different frame.
 */
export function gpuSiteName(stack: readonly FrameJson[]): string {
  const leaf = stack[0];
  if (leaf === undefined) {
    return "(no stack recorded)";
  }
  const python = stack.find(({ kind }) => kind === "python");
  const headline = stack.find((frame) => isOwnFrame(frame)) ?? python ?? leaf;
  const where = `${functionOf(headline)} ${shortPlace(headline)}`.trim();
  const called = python !== undefined && python !== headline ? python : undefined;
  return called === undefined
    ? where
    : `${where} in ${functionOf(called)} ${shortPlace(called)}`.trim();
}

/** The text that `--filter` searches. */
export function siteText({
  stack,
  category,
}: {
  stack: readonly FrameJson[];
  category: string;
}): string {
  return `${category} ${stack.map((frame) => `${frame.function} ${frame.file}:${frame.line}`).join(" ")}`;
}
