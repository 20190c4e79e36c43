/**
 * A profile for speedscope.app, with one sampled profile for each figure.
 * Source: https://www.speedscope.app/file-format-schema.json
 */

import { addAt, float64At, itemAt, uint32At } from "../../model/base/columns.js";
import type { FrameId } from "../../model/base/units.js";
import { frameName, framesOf } from "../../model/profile/frame_text.js";
import { knowsValue } from "../../model/profile/imported.js";
import type { Profile, SiteValue } from "../../model/profile/profile.js";
import type { ExportOptions, ProfileExporter } from "../format.js";
import { oneText } from "./one_text.js";

const VALUES: readonly (readonly [SiteValue, string, "bytes" | "none"])[] = [
  ["liveBytes", "live bytes", "bytes"],
  ["peakBytes", "bytes at the peak", "bytes"],
  ["allocatedBytes", "allocated bytes", "bytes"],
  ["liveObjects", "live objects", "none"],
  ["allocatedObjects", "allocated objects", "none"],
];

export const speedscope = {
  name: "speedscope",
  extension: ".speedscope.json",
  description: "one profile each for live, peak and allocated memory",
  stdout: "always",
  mark: { head: /^\{"\$schema":/, text: '"exporter":"tidemark"' },
  kind: "profile",
  encode: toSpeedscope,
} satisfies ProfileExporter;

/** The JSON text. Samples are ordered by stack, so that equal stacks are adjacent. */
function toSpeedscope(
  profile: Profile,
  { title, imported }: Pick<ExportOptions, "title" | "imported">,
): string {
  const frames: { name: string; file: string; line?: number }[] = [];
  const frameIndexes = new Map<FrameId, number>();
  const indexOf = (frame: FrameId): number => {
    let index = frameIndexes.get(frame);
    if (index === undefined) {
      const line = uint32At(profile.frames.line, frame);
      const file = itemAt(profile.strings, uint32At(profile.frames.file, frame));
      index = frames.push({ name: frameName(profile, frame), file, ...(line > 0 && { line }) }) - 1;
      frameIndexes.set(frame, index);
    }
    return index;
  };
  const known = VALUES.filter(([value]) => knowsValue(imported, value));
  const profiles = known.map(([value, name, unit]) => {
    const own = new Float64Array(profile.stacks.length);
    const values = profile.sites[value];
    for (let site = 0; site < profile.sites.length; site++) {
      addAt(own, uint32At(profile.sites.stack, site), float64At(values, site));
    }
    const samples: number[][] = [];
    const weights: number[] = [];
    let total = 0;
    for (let stack = 0; stack < own.length; stack++) {
      if (float64At(own, stack) > 0) {
        samples.push(framesOf(profile, stack).reverse().map(indexOf));
        weights.push(float64At(own, stack));
        total += float64At(own, stack);
      }
    }
    return { type: "sampled", name, unit, startValue: 0, endValue: total, samples, weights };
  });
  const file = {
    $schema: "https://www.speedscope.app/file-format-schema.json",
    name: title,
    exporter: "tidemark",
    activeProfileIndex: 0,
    shared: { frames },
    profiles,
  };
  return oneText("speedscope", () => JSON.stringify(file));
}
