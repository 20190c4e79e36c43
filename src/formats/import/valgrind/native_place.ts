/** Frames as Valgrind prints them. */
import { type ForeignFrame, nativeFrame } from "../imported_sites.js";
import { splitPlace } from "../text.js";

/**
 * "0x109170: keep (small.c:3)", "0x48417B4: malloc (in /usr/lib/x.so)", "0x109170: ??? (in ...)". The allocation
 * function itself is kept: it is the leaf.
 */
export function placeOf(text: string): ForeignFrame {
  const rest = text.replace(/^\s*0x[0-9A-Fa-f]+: /, "");
  const object = rest.endsWith(")") ? rest.lastIndexOf(" (in ") : -1;
  if (object >= 0) {
    return nativeFrame(nameOf(rest.slice(0, object)), rest.slice(object + 5, -1));
  }
  const source = rest.endsWith(")") ? rest.lastIndexOf(" (") : -1;
  const { file, line } = splitPlace(rest.slice(source + 2, -1));
  return source >= 0 && line > 0
    ? nativeFrame(nameOf(rest.slice(0, source)), file, line)
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
