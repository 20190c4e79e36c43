/** When the services of a fleet are asked. */
const HOUR = 3_600_000;

/** Before the end, where nothing leaks. */
export const CALM_MOMENTS_MS = [3, 11, 26, 49, 78, 124].map((hours) => hours * HOUR);

/** After the start of a leak. */
export const DETECTION_MS = [1, 2, 3, 4, 6, 9, 12, 18, 24, 36, 48, 72, 96, 144, 192, 240].map(
  (hours) => hours * HOUR,
);
