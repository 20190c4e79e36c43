/** A site of a device's memory as one row's text: the user's own line, and what it called. */

import type { FrameJson } from "../../../model/documents/documents.js";
import { isOwnFrame } from "../../../model/gpu/gpu_frame_roles.js";
import { functionOf, placeOf } from "../sites.js";

/** "cs336_basics/optimizer.py:75": a snapshot comes from elsewhere, its paths lead nowhere here. */
function shortPlace(frame: FrameJson): string {
  if (frame.file === "??") {
    return "";
  }
  return placeOf(frame).replace(/^.*[/\\](?=[^/\\]*[/\\][^/\\]*$)/, "");
}

/** "forward model.py:41 (empty_strided)": the nearest own frame, and the leaf where it is another. */
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

/** What `--filter` looks at. */
export function siteText({
  stack,
  category,
}: {
  stack: readonly FrameJson[];
  category: string;
}): string {
  return `${category} ${stack.map((frame) => `${frame.function} ${frame.file}:${frame.line}`).join(" ")}`;
}
