/**
 * `tidemark check`: runs a program and compares what it used with limits and with a baseline.
 *
 *     recording ── measure ──> figures with intervals ── judge ──> gates ──> tidemark.check/1, JUnit's XML
 *                                    └── formatBaseline ──> a text file ── parseBaseline ──┘ (the next run)
 */
export type { Recording, RunResult } from "../inspect/index.js";
export { type Baseline, isBaseline, parseBaseline } from "./baseline.js";
export { type Checked, checkRecording } from "./check.js";
export type { Gates } from "./judge.js";
export { junitXml } from "./junit.js";
