/**
 * Ids made from content, before any store: writing the same thing twice gives the same rows, so a
 * retry loses and doubles nothing. The first 64 bits of SHA-256, signed, for SQL has no other.
 */
import { createHash } from "node:crypto";
import { FrameKind, type ProfileTables } from "../model/profile.js";
import type { FrameId, StackId } from "../model/units.js";

export type ContentId = bigint;

export function contentId(...parts: readonly (string | number | bigint)[]): ContentId {
  const hash = createHash("sha256");
  for (const part of parts) {
    // Lengths first, so that no two lists of parts make the same bytes.
    const text = String(part);
    hash.update(`${text.length}:${text}`);
  }
  return hash.digest().readBigInt64LE(0);
}

export const FRAME_KIND_NAMES = ["python", "native", "mark"] as const;

/** A frame by what it is, not by where it stands in a recording's table. */
export function frameId(tables: ProfileTables, frame: FrameId): ContentId {
  const { frames, strings } = tables;
  const kind = frames.kind[frame]!;
  return contentId(
    strings[frames.function[frame]!]!,
    strings[frames.file[frame]!]!,
    frames.line[frame]!,
    FRAME_KIND_NAMES[kind] ?? kind,
    kind === FrameKind.native ? frames.address[frame]! : 0,
  );
}

/** Every stack's id, by row: a stack is its parent's id and its own frame. */
export function stackIds(tables: ProfileTables, frameIds: readonly ContentId[]): ContentId[] {
  const { stacks } = tables;
  const ids: ContentId[] = [contentId("stack")];
  for (let stack: StackId = 1; stack < stacks.length; stack++) {
    ids.push(contentId(ids[stacks.parent[stack]!]!, frameIds[stacks.frame[stack]!]!));
  }
  return ids;
}
