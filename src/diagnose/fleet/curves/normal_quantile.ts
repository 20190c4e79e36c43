/** z such that a standard normal variable is below it with the probability, from 0.5 to below 1; error under 4.5e-4
 * (Abramowitz and Stegun, "Handbook of Mathematical Functions", 26.2.23). */
export function normalQuantile(probability: number): number {
  const t = Math.sqrt(-2 * Math.log(1 - probability));
  return (
    t -
    (2.515517 + 0.802853 * t + 0.010328 * t * t) /
      (1 + 1.432788 * t + 0.189269 * t * t + 0.001308 * t ** 3)
  );
}
