/** Names of frames on the page. */
import { itemAt, uint8At, uint32At } from "../../../src/model/base/columns.js";
import { baseName, frameName, readableFile } from "../../../src/model/profile/frame_text.js";
import { FrameKind, type ProfileTables } from "../../../src/model/profile/profile.js";

export interface FrameWords {
  readonly function: string;
  readonly file: string;
  readonly line: number;
  readonly kind: "python" | "native" | "mark";
  /** "app.py:41"; for a native frame its object file; "" for a mark. */
  readonly place: string;
}

const KIND_NAMES = {
  [FrameKind.python]: "python",
  [FrameKind.native]: "native",
  [FrameKind.mark]: "mark",
} as const;

export function frameWords(tables: ProfileTables, frame: number): FrameWords {
  const { frames, strings } = tables;
  const file = strings[uint32At(frames.file, frame)] ?? "";
  const line = uint32At(frames.line, frame);
  const kind = KIND_NAMES[uint8At(frames.kind, frame) as FrameKind] ?? "mark";
  const base = baseName(readableFile(file));
  const place = kind === "mark" || base === "" ? "" : line > 0 ? `${base}:${line}` : base;
  return { function: frameName(tables, frame), file, line, kind, place };
}

/**
 * For each frame, 1 if its function or file:line contains `text`, ignoring case; "/…/" is a pattern. Null if
 * the pattern is invalid.
 */
export function framesMatching(tables: ProfileTables, text: string): Uint8Array | null {
  const test = matcher(text);
  if (test === null) {
    return null;
  }
  const { frames, strings } = tables;
  const matches = new Uint8Array(frames.length);
  for (let frame = 0; frame < frames.length; frame++) {
    const name = itemAt(strings, uint32At(frames.function, frame));
    const file = itemAt(strings, uint32At(frames.file, frame));
    if (test(name) || test(`${file}:${uint32At(frames.line, frame)}`)) {
      matches[frame] = 1;
    }
  }
  return matches;
}

/** Parses a search field: a substring, or a pattern between slashes. */
export function matcher(text: string): ((candidate: string) => boolean) | null {
  const pattern = /^\/(.+)\/$/.exec(text)?.[1];
  if (pattern !== undefined) {
    try {
      const expression = new RegExp(pattern, "i");
      return (candidate) => expression.test(candidate);
    } catch {
      return null;
    }
  }
  const wanted = text.toLowerCase();
  return (candidate) => candidate.toLowerCase().includes(wanted);
}
