/** Quantiles of Student's t distribution, for intervals of a mean from a few runs. */

/**
 * P(|T| <= t) for whole degrees of freedom: Abramowitz and Stegun, "Handbook of Mathematical Functions",
 * 26.7.3 (odd) and 26.7.4 (even).
 */
function withinT(t: number, freedom: number): number {
  const angle = Math.atan(t / Math.sqrt(freedom));
  const cos2 = Math.cos(angle) ** 2;
  const isOdd = freedom % 2 === 1;
  let term = isOdd ? Math.cos(angle) : 1;
  let sum = freedom === 1 ? 0 : term;
  for (let k = isOdd ? 3 : 2; k <= freedom - 2; k += 2) {
    term *= (cos2 * (k - 1)) / k;
    sum += term;
  }
  return isOdd ? (2 / Math.PI) * (angle + Math.sin(angle) * sum) : Math.sin(angle) * sum;
}

/** The t that |T| stays below with probability `level`. `freedom`: a whole number of 1 or more. */
export function twoSidedT(level: number, freedom: number): number {
  let [low, high] = [0, 1];
  while (withinT(high, freedom) < level && high < 1e9) {
    high *= 2;
  }
  for (let step = 0; step < 80; step++) {
    const middle = (low + high) / 2;
    [low, high] = withinT(middle, freedom) < level ? [middle, high] : [low, middle];
  }
  return (low + high) / 2;
}
