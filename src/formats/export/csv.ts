/** The sites as a table of comma-separated values by RFC 4180: lines end in CRLF, quotes are doubled. */
import { float64At, itemAt, uint8At, uint16At, uint32At } from "../../model/base/columns.js";
import { frameName, framePlace, framesOf, labelPairs } from "../../model/profile/frame_text.js";
import { hasErrors, isUnknown, knowsValue } from "../../model/profile/imported.js";
import type { Profile, SiteValue } from "../../model/profile/profile.js";
import type { ExportOptions, ProfileExporter } from "../format.js";
import { oneText } from "./one_text.js";

const COLUMNS = [
  "pid",
  "thread",
  "domain",
  "labels",
  "function",
  "file",
  "line",
  "stack",
  "live_bytes",
  "live_standard_error",
  "live_objects",
  "live_samples",
  "peak_bytes",
  "peak_standard_error",
  "peak_objects",
  "allocated_bytes",
  "allocated_standard_error",
  "allocated_objects",
] as const;
export const csv = {
  name: "csv",
  extension: ".csv",
  description: "a table with one row per allocation site, for spreadsheets",
  stdout: "always",
  mark: { head: /^pid,/, text: COLUMNS.join(",") },
  kind: "profile",
  encode: toCsv,
} satisfies ProfileExporter;

const DOMAIN_NAMES = ["python", "native", "mapped"] as const;

/** A header, then one row per site, largest live bytes first. `stack` is root first; unknown cells are empty. */
function toCsv(profile: Profile, { imported }: Pick<ExportOptions, "imported"> = {}): string {
  const { sites, frames, strings } = profile;
  const order = Uint32Array.from({ length: sites.length }, (_, site) => site).sort(
    (a, b) => float64At(sites.liveBytes, b) - float64At(sites.liveBytes, a) || a - b,
  );
  const known = (value: SiteValue, figure: number) =>
    knowsValue(imported, value) ? Math.round(figure) : "";
  const error = (value: SiteValue, variance: number) =>
    hasErrors(imported) ? known(value, Math.sqrt(variance)) : "";
  const hasDomains = !isUnknown(imported, "python");
  const lines: string[] = [COLUMNS.join(",")];
  for (const site of order) {
    const stack = framesOf(profile, uint32At(sites.stack, site));
    const leaf = stack[0];
    const row: Record<(typeof COLUMNS)[number], string | number> = {
      pid: profile.processes[uint16At(sites.process, site)]?.pid ?? 0,
      thread: profile.threads[uint32At(sites.thread, site)]?.name ?? "",
      domain: hasDomains ? (DOMAIN_NAMES[uint8At(sites.domain, site)] ?? "") : "",
      labels: Array.from(labelPairs(profile, uint32At(sites.label, site)), (pair) =>
        pair.join("="),
      ).join(";"),
      function: leaf === undefined ? "" : frameName(profile, leaf),
      file: leaf === undefined ? "" : itemAt(strings, uint32At(frames.file, leaf)),
      line: leaf === undefined ? 0 : uint32At(frames.line, leaf),
      stack: stack
        .map((frame) => `${frameName(profile, frame)} (${framePlace(profile, frame)})`)
        .reverse()
        .join(";"),
      live_bytes: known("liveBytes", float64At(sites.liveBytes, site)),
      live_standard_error: error("liveBytes", float64At(sites.liveVariance, site)),
      live_objects: known("liveObjects", float64At(sites.liveObjects, site)),
      live_samples: imported === undefined ? uint32At(sites.liveSamples, site) : "",
      peak_bytes: known("peakBytes", float64At(sites.peakBytes, site)),
      peak_standard_error: error("peakBytes", float64At(sites.peakVariance, site)),
      peak_objects: known("peakObjects", float64At(sites.peakObjects, site)),
      allocated_bytes: known("allocatedBytes", float64At(sites.allocatedBytes, site)),
      allocated_standard_error: error("allocatedBytes", float64At(sites.allocatedVariance, site)),
      allocated_objects: known("allocatedObjects", float64At(sites.allocatedObjects, site)),
    };
    lines.push(COLUMNS.map((column) => cell(row[column])).join(","));
  }
  return oneText("csv", () => `${lines.join("\r\n")}\r\n`);
}

function cell(value: string | number): string {
  const text = String(value);
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}
