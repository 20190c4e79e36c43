import { createHash } from "node:crypto";

/** The first 64 bits of a SHA-256 over the parts: the same content has the same id everywhere. */
export function contentId(kind: string, ...parts: readonly (string | number | bigint)[]): bigint {
  // JSON distinguishes ["ab", "c"] from ["a", "bc"].
  const text = JSON.stringify([
    kind,
    ...parts.map((part) => (typeof part === "bigint" ? `#${part}` : part)),
  ]);
  return createHash("sha256").update(text).digest().readBigUInt64BE(0);
}
