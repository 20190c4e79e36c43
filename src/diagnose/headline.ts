import type { FrameJson } from "../model/documents.js";
import { isOwnPath } from "./own_code.js";
import type { SiteHistory } from "./site_history.js";

/** The frame that a site is called by: the program's own that is nearest to the leaf. */
export function headlineOf({ keptStacks }: SiteHistory): FrameJson | undefined {
  const frames = keptStacks[0]?.frames ?? [];
  return (
    frames.find((frame) => frame.kind === "python" && isOwnPath(frame.file, frame.function)) ??
    frames.find((frame) => frame.kind === "python") ??
    frames[0]
  );
}
