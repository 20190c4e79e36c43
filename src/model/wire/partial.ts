/** Answers that are made from a part of the server's database, because the rest did not answer. */

export interface PartialAnswer {
  /** Shards of the database. */
  readonly shards: number;
  /** Those that did not answer. */
  readonly missing: number;
}

/** A header of such an answer: "missing=1; shards=2". JSON documents also have it as the field `partial`. */
export const PARTIAL_HEADER = "tidemark-partial";

export function partialHeader({ missing, shards }: PartialAnswer): string {
  return `missing=${missing}; shards=${shards}`;
}

/** null: the answer is complete. */
export function partialIn(headers: Pick<Headers, "get">): PartialAnswer | null {
  const [, missing, shards] =
    /^missing=(\d+); shards=(\d+)$/.exec(headers.get(PARTIAL_HEADER) ?? "") ?? [];
  return missing === undefined ? null : { missing: Number(missing), shards: Number(shards) };
}

export function partialSentence({ missing, shards }: PartialAnswer): string {
  return `${missing} of ${shards} shards of the server's database ${missing === 1 ? "does" : "do"} not answer: processes whose data are there are missing, and sums are too small`;
}
