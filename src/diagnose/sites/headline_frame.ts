import type { FrameJson } from "../../model/documents/documents.js";
import { ownFrame } from "../../model/documents/own_code.js";
import { isNotebookCell } from "../../model/profile/frame_text.js";
import type { SiteHistory } from "./site_history.js";

/** The file of a site whose memory several cells of a session allocate. */
const SEVERAL_CELLS = "notebook cells";

/** The frame that names a site; without a line if it is code of several cells. */
export function headlineOf({ keptStacks }: SiteHistory): FrameJson | undefined {
  const first = ownFrame(keptStacks[0]?.frames ?? []);
  if (first === undefined || !isNotebookCell(first.file)) {
    return first;
  }
  const areSeveral = keptStacks.some(({ frames }) => {
    const file = ownFrame(frames)?.file ?? first.file;
    return file !== first.file && isNotebookCell(file);
  });
  return areSeveral ? { ...first, file: SEVERAL_CELLS, line: 0 } : first;
}
