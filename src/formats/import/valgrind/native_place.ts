/** Frames as Valgrind prints them. */
import { type ForeignFrame, nativeFrame } from "../imported_sites.js";

/**
 * "0x109170: keep (small.c:3)", "0x48417B4: malloc (in /usr/lib/x.so)", "0x109170: ??? (in ...)". The allocation
 * function itself is kept: it is the leaf.
 */
export function placeOf(text: string): ForeignFrame {
  const rest = text.replace(/^\s*0x[0-9A-Fa-f]+: /, "");
  const inObject = /^(.*) \(in (.*)\)$/s.exec(rest);
  if (inObject) {
    return nativeFrame(nameOf(inObject[1] ?? ""), inObject[2] ?? "");
  }
  const inSource = /^(.*) \((.*):(\d+)\)$/s.exec(rest);
  return inSource
    ? nativeFrame(nameOf(inSource[1] ?? ""), inSource[2] ?? "", Number(inSource[3]))
    : nativeFrame(nameOf(rest), "");
}

function nameOf(text: string): string {
  return text === "???" ? "" : text;
}

/** Valgrind's own malloc and memcpy, which replace the C library's. */
const REPLACEMENT = /\/vgpreload_|vg_replace_|dh_main/;

/** The frames without those of Valgrind's replacements at the leaf. Leaf first. */
export function ownFrames(frames: readonly ForeignFrame[]): readonly ForeignFrame[] {
  const first = frames.findIndex(({ file }) => !REPLACEMENT.test(file));
  return first < 0 ? frames : frames.slice(first);
}
