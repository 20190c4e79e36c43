/** Text of frames in verdict sentences. */
import type { FrameJson } from "../../model/documents/documents.js";
import { readableFile } from "../../model/profile/frame_text.js";

/** "record (app.py:41)" */
export function frameText(frame: FrameJson | undefined): string {
  if (!frame) {
    return "an unknown place";
  }
  const known = readableFile(frame.file);
  const file = known.slice(known.lastIndexOf("/") + 1);
  const name = frame.function || "(no symbol)";
  return file === "" ? name : `${name} (${file}${frame.line > 0 ? `:${frame.line}` : ""})`;
}
