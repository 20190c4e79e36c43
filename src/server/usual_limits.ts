import type { Millis } from "../model/base/units.js";
import { USUAL_ACTION_LIMITS } from "./actions/action_limits.js";
import { USUAL_SIZES } from "./answers/sizes.js";
import { USUAL_ARTIFACT_LIMITS } from "./artifacts/artifact_files.js";
import type { ServeLimits } from "./serve.js";

const DAY_MS: Millis = 86_400_000;

/** Where neither an option nor the configuration says otherwise. */
export const USUAL_LIMITS: ServeLimits = {
  keepMs: 730 * DAY_MS,
  keepRecordingsMs: 30 * DAY_MS,
  tiers: { raw: 2 * DAY_MS, "10m": 14 * DAY_MS, "1h": 90 * DAY_MS },
  mostBytes: 10 * 2 ** 30,
  logLevel: "warn",
  alerts: null,
  actions: USUAL_ACTION_LIMITS,
  artifacts: USUAL_ARTIFACT_LIMITS,
  sizes: USUAL_SIZES,
  asksForAgents: true,
  handedPolicy: null,
};
