/** Why a framework that a program has loaded tells of no device. */
import type { FrameworkFigures } from "../../../gpu/devices/device_figures.js";

const STATES: Readonly<Record<FrameworkFigures["state"], string>> = {
  used: "",
  unused: "is loaded and has not begun to use a device",
  "cpu-only": "is loaded and has no device here",
  failed: "could not be asked",
};

/** @internal */
export function unusedText({ name, version, state, detail }: FrameworkFigures): string {
  return [`${name} ${version}`.trim(), STATES[state], detail && `(${detail})`].join(" ").trim();
}
