import type { FrameJson } from "../../model/documents/documents.js";
import { ownFrame } from "../../model/documents/own_code.js";
import type { SiteHistory } from "./site_history.js";

/** The frame that names a site. */
export function headlineOf({ keptStacks }: SiteHistory): FrameJson | undefined {
  return ownFrame(keptStacks[0]?.frames ?? []);
}
