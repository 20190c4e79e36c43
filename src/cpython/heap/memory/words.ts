/** Words of a program's memory, from an array of their 32-bit halves. Words after the end of the array are 0. */

/** An unsigned word, as a Number: exact below 2^53. */
export function wordAt(halves: Uint32Array, at: number): number {
  return (halves[at] ?? 0) + (halves[at + 1] ?? 0) * 2 ** 32;
}

/** A signed word. */
export function signedWordAt(halves: Uint32Array, at: number): number {
  return (halves[at] ?? 0) + ((halves[at + 1] ?? 0) | 0) * 2 ** 32;
}
