import { expect, test } from "vitest";
import { mannKendall } from "./mann_kendall.js";
import { theilSen } from "./trend.js";

/** Yearly flow of the Nile at Aswan, 1871-1970 (Cobb 1978, Biometrika 65; R's data set `Nile`). */
const NILE = [
  1120, 1160, 963, 1210, 1160, 1160, 813, 1230, 1370, 1140, 995, 935, 1110, 994, 1020, 960, 1180,
  799, 958, 1140, 1100, 1210, 1150, 1250, 1260, 1220, 1030, 1100, 774, 840, 874, 694, 940, 833, 701,
  916, 692, 1020, 1050, 969, 831, 726, 456, 824, 702, 1120, 1100, 832, 764, 821, 768, 845, 864, 862,
  698, 845, 744, 796, 1040, 759, 781, 865, 845, 944, 984, 897, 822, 1010, 771, 676, 649, 846, 812,
  742, 801, 1040, 860, 874, 848, 890, 744, 749, 838, 1050, 918, 986, 797, 923, 975, 815, 1020, 906,
  901, 1170, 912, 746, 919, 718, 714, 740,
];

// The figures are pymannkendall 1.4.3's for the same series (hamed_rao_modification_test, sens_slope).
test("the Nile data: S, tau, and the z of Hamed and Rao", () => {
  const result = mannKendall(NILE);
  expect(result.s).toBe(-1387);
  expect(result.tau).toBeCloseTo(-0.2802, 4);
  expect(result.z).toBeCloseTo(-2.81998, 4);
});

test("the Nile data: Sen's slope, and an interval around it that excludes zero", () => {
  const years = NILE.map((_, i) => i);
  const { slope, low, high } = theilSen(years, NILE);
  expect(slope).toBeCloseTo(-2.6, 6);
  expect(low).toBeLessThan(slope);
  expect(high).toBeGreaterThan(slope);
  expect(high).toBeLessThan(0);
});

test("a line has every pair rising; a constant or a few points prove nothing", () => {
  const line = mannKendall(Array.from({ length: 30 }, (_, i) => 2 * i));
  expect(line.tau).toBe(1);
  expect(line.z).toBeGreaterThan(5);
  expect(mannKendall(new Array(30).fill(5))).toMatchObject({ s: 0, tau: 0, z: 0 });
  expect(mannKendall([1, 2, 3])).toMatchObject({ s: 0, tau: 0, z: 0 });
});

test("a slow wave is not a trend once autocorrelation is considered", () => {
  const wave = Array.from({ length: 120 }, (_, i) => Math.sin(i / 12));
  expect(Math.abs(mannKendall(wave).z)).toBeLessThan(1.96);
});
