/** The numbers of src/model/base/numbers.ts in the page's typography: a true minus sign, counts shortened from 10,000 on. */
import * as numbers from "../../../src/model/base/numbers.js";

export {
  formatDuration,
  formatMilliseconds,
  formatMoment,
  formatUtcTime,
  formatWallClock,
} from "../../../src/model/base/numbers.js";

export const formatBytes = withMinus(numbers.formatBytes);
export const formatSignedBytes = withMinus(numbers.formatSignedBytes);
export const formatGrowth = withMinus(numbers.formatGrowth);
export const formatGrowthInterval = withMinus(numbers.formatGrowthInterval);
export const formatCount = withMinus((count: number) => numbers.formatCount(count, 10_000));
export const formatRequestRate = withMinus(numbers.formatRequestRate);
export const formatExactCount = withMinus(numbers.formatExactCount);
export const formatSignedCount = withMinus(numbers.formatSignedCount);
export const formatShare = withMinus(numbers.formatFineShare);
export const formatElapsed = withMinus(numbers.formatElapsed);

function withMinus<Values extends unknown[]>(format: (...values: Values) => string) {
  return (...values: Values): string => format(...values).replace(/^-/, "−");
}
