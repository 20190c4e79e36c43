/** The sites as a table of comma-separated values by RFC 4180: lines end in CRLF, quotes are doubled. */
import { frameName, framePlace, framesOf, labelPairs } from "../../model/profile/frame_text.js";
import type { Profile } from "../../model/profile/profile.js";
import type { ProfileExporter } from "../format.js";
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

/** A header, then one row per site, largest live bytes first. `stack` is root first. */
function toCsv(profile: Profile): string {
  const { sites, frames, strings } = profile;
  const order = Uint32Array.from({ length: sites.length }, (_, site) => site).sort(
    (a, b) => sites.liveBytes[b]! - sites.liveBytes[a]! || a - b,
  );
  const lines: string[] = [COLUMNS.join(",")];
  for (const site of order) {
    const stack = framesOf(profile, sites.stack[site]!);
    const leaf = stack[0];
    const row: Record<(typeof COLUMNS)[number], string | number> = {
      pid: profile.processes[sites.process[site]!]?.pid ?? 0,
      thread: profile.threads[sites.thread[site]!]?.name ?? "",
      domain: DOMAIN_NAMES[sites.domain[site]!] ?? "",
      labels: Array.from(labelPairs(profile, sites.label[site]!), (pair) => pair.join("=")).join(
        ";",
      ),
      function: leaf === undefined ? "" : frameName(profile, leaf),
      file: leaf === undefined ? "" : strings[frames.file[leaf]!]!,
      line: leaf === undefined ? 0 : frames.line[leaf]!,
      stack: stack
        .map((frame) => `${frameName(profile, frame)} (${framePlace(profile, frame)})`)
        .reverse()
        .join(";"),
      live_bytes: Math.round(sites.liveBytes[site]!),
      live_standard_error: Math.round(Math.sqrt(sites.liveVariance[site]!)),
      live_objects: Math.round(sites.liveObjects[site]!),
      live_samples: sites.liveSamples[site]!,
      peak_bytes: Math.round(sites.peakBytes[site]!),
      peak_standard_error: Math.round(Math.sqrt(sites.peakVariance[site]!)),
      peak_objects: Math.round(sites.peakObjects[site]!),
      allocated_bytes: Math.round(sites.allocatedBytes[site]!),
      allocated_standard_error: Math.round(Math.sqrt(sites.allocatedVariance[site]!)),
      allocated_objects: Math.round(sites.allocatedObjects[site]!),
    };
    lines.push(COLUMNS.map((column) => cell(row[column])).join(","));
  }
  return oneText("csv", () => `${lines.join("\r\n")}\r\n`);
}

function cell(value: string | number): string {
  const text = String(value);
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}
