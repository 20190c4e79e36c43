/** Why a loaded framework reports no device. */
import type { FrameworkFigures } from "../../../gpu/devices/device_figures.js";

const STATES: Readonly<Record<FrameworkFigures["state"], string>> = {
  used: "",
  unused: "is loaded but has not used a device yet",
  "cpu-only": "is loaded but has no device here",
  failed: "could not be queried",
};

/** @internal */
export function unusedText({ name, version, state, detail }: FrameworkFigures): string {
  return [`${name} ${version}`.trim(), STATES[state], detail && `(${detail})`].join(" ").trim();
}
