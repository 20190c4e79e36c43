/** Leak patterns in Python source. */
export { type LintSettings, settingsAbove } from "./files/settings.js";
export { type LintRequest, type LintRun, lintPaths } from "./lint.js";
export { baselineText, beyondBaseline } from "./results/baseline.js";
export { RULES } from "./rules/index.js";
export type { Rule } from "./rules/rule.js";
