/** The lines of the user's own code, as the terminal names them. */
import { uint32At } from "../../../src/model/base/columns.js";
import type { FrameJson } from "../../../src/model/documents/documents.js";
import { ownFrame } from "../../../src/model/documents/own_code.js";
import { framesOf } from "../../../src/model/profile/frame_text.js";
import type { ProfileTables } from "../../../src/model/profile/profile.js";
import { NO_FRAME } from "../../../src/model/profile/site_groups.js";
import { frameWords } from "./frameNames.js";

/** For a stack: the frame of the user's own code that led to the allocation; the innermost frame if there is none. */
export function ownFrameOf(tables: ProfileTables): (stack: number) => number {
  const words = new Map<number, FrameJson>();
  const found = new Map<number, number>();
  const wordsOf = (frame: number): FrameJson => {
    const known = words.get(frame) ?? frameWords(tables, frame);
    words.set(frame, known);
    return known;
  };
  return (stack) => {
    let frame = found.get(stack);
    if (frame === undefined) {
      const frames = framesOf(tables, stack);
      const own = ownFrame(frames.map(wordsOf));
      const at = frames.findIndex((candidate) => wordsOf(candidate) === own);
      frame = at < 0 ? NO_FRAME : uint32At(Uint32Array.from(frames), at);
      found.set(stack, frame);
    }
    return frame;
  };
}
