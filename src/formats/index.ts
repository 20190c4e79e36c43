/** Profiles in other tools' formats: one file a format. */
export { toCsv } from "./csv.js";
export { toFolded } from "./folded.js";
export { toPprof } from "./pprof.js";
export { toSpeedscope } from "./speedscope.js";
