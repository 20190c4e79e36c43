/**
 * Folded stacks, one per line: frames root first between semicolons, a space, a whole number.
 * Source: https://github.com/brendangregg/FlameGraph, stackcollapse.
 */

import { addAt, float64At, uint32At, wholeNumbers } from "../../model/base/columns.js";
import type { FrameId } from "../../model/base/units.js";
import { frameName, framePlace, framesOf } from "../../model/profile/frame_text.js";
import type { Profile } from "../../model/profile/profile.js";
import type { ExportOptions, ProfileExporter } from "../format.js";
import { oneText } from "./one_text.js";

export const folded = {
  name: "folded",
  extension: ".folded.txt",
  description: "one line per stack, for flamegraph.pl and inferno",
  stdout: "always",
  mark: null,
  kind: "profile",
  oneValue: true,
  encode: toFolded,
} satisfies ProfileExporter;

/** The stacks whose figure rounds to 1 or more, each once, in the order of the stack table. */
function toFolded(profile: Profile, { value }: Pick<ExportOptions, "value">): string {
  const { stacks, sites } = profile;
  const own = new Float64Array(stacks.length);
  const values = sites[value];
  for (let site = 0; site < sites.length; site++) {
    addAt(own, uint32At(sites.stack, site), float64At(values, site));
  }
  const names = new Map<FrameId, string>();
  const nameOf = (frame: FrameId): string => {
    const name = names.get(frame) ?? foldedName(profile, frame);
    names.set(frame, name);
    return name;
  };
  const lines = new Map<string, number>();
  for (let stack = 0; stack < stacks.length; stack++) {
    if (float64At(own, stack) > 0) {
      const path =
        stack === 0 ? "[no stack]" : framesOf(profile, stack).reverse().map(nameOf).join(";");
      lines.set(path, (lines.get(path) ?? 0) + float64At(own, stack));
    }
  }
  const whole = wholeNumbers(Float64Array.from(lines.values()));
  const rows = Array.from(lines.keys(), (path, at) => [path, float64At(whole, at)] as const).filter(
    ([, figure]) => figure > 0,
  );
  return oneText("folded stacks", () =>
    rows.map(([path, figure]) => `${path} ${figure}\n`).join(""),
  );
}

/** "load (app.py:41)"; characters that the format reserves are replaced. */
function foldedName(profile: Profile, frame: FrameId): string {
  const place = framePlace(profile, frame);
  const name = frameName(profile, frame);
  return (place === "" ? name : `${name} (${place})`).replaceAll(";", ":").replace(/[\s]+/g, " ");
}
