/** When the services of a fleet are asked. */
const HOUR = 3_600_000;

/** Before the end, where nothing leaks. */
export const CALM_MOMENTS_MS = [3, 14, 40, 90].map((hours) => hours * HOUR);

/** After the start of a leak. */
export const DETECTION_MS = [1, 2, 4, 6, 9, 12, 18, 24, 36, 48, 72, 120, 192].map(
  (hours) => hours * HOUR,
);

/** Ages of an innocent deploy. */
export const DEPLOY_AGES_MS = [2, 4, 6, 9, 15, 24, 40, 72, 120].map((hours) => hours * HOUR);
