/** Numbers from 0 to below 1, deterministic for a seed, so that a failing test fails again. (Constants of
 * Numerical Recipes' quick generator.) */
export function randomFrom(seed: number): () => number {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return state / 2 ** 32;
  };
}

/** Whole numbers from 0 to below the argument. */
export function wholeNumbersFrom(seed: number): (below: number) => number {
  const random = randomFrom(seed);
  return (below) => Math.floor(random() * below);
}
