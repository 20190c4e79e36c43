/** Folded stacks, "root;caller;leaf 123" a line: Pyroscope's text formats `folded` and `lines`. */

import { frameKindOf } from "./pprof.js";
import { type DecodedProfile, malformed, withinLimit } from "./received_profile.js";
import { type Figure, type ReceivedFrame, SampleCollector } from "./received_samples.js";

/** A frame as py-spy and Pyroscope's own SDKs write it: "app.py:handle:12" or "handle (app.py:12)". */
const FILE_FIRST = /^([^\s:]+\.\w+):(.+?)(?::(\d+))?$/;
const FILE_LAST = /^(.*\S) \(([^()]+?)(?::(\d+))?\)$/;

/** `format`: in `lines` each line is a stack that counts once. Throws TidemarkError. */
export function decodeFolded(
  text: string,
  { figure, format }: { figure: Figure; format: "folded" | "lines" },
): DecodedProfile {
  const samples = new SampleCollector();
  const rows = new Map<string, number>();
  const rowOf = (name: string) => {
    let row = rows.get(name);
    if (row === undefined) {
      row = samples.addFrame(frameNamed(name));
      rows.set(name, row);
    }
    return row;
  };
  for (const line of text.split("\n")) {
    if (line.trim() === "") {
      continue;
    }
    withinLimit("samples-per-profile", samples.length + 1);
    const end = format === "lines" ? line.length : line.lastIndexOf(" ");
    const value = format === "lines" ? 1 : Number(line.slice(end + 1));
    if (end < 0 || !(value >= 0 && value <= Number.MAX_SAFE_INTEGER)) {
      malformed("a line of its folded stacks does not end with a number from 0 to 2^53 - 1");
    }
    const names = line.slice(0, end).split(";").reverse();
    withinLimit("stack-depth", names.length);
    const start = samples.framesPushed;
    const place = { start, end: start + names.length };
    withinLimit("frames-per-profile", place.end);
    for (const name of names) {
      samples.pushFrame(rowOf(name));
    }
    samples.addSample(place, samples.threadRow(""), samples.labelsRow([]), {
      ...{ liveBytes: 0, liveObjects: 0, allocatedBytes: 0, allocatedObjects: 0 },
      [figure]: value,
    });
  }
  const about = { figures: [figure], timeMs: 0, durationMs: 0, periodBytes: 0 };
  return { samples: samples.samples(), ...about };
}

function frameNamed(name: string): ReceivedFrame {
  withinLimit("name-bytes", Buffer.byteLength(name));
  const [, file = "", plain = name, line = "0"] = FILE_FIRST.exec(name) ?? [];
  const [, lastName = plain, lastFile = file, lastLine = line] = FILE_LAST.exec(plain) ?? [];
  const kind = frameKindOf(lastFile);
  return { function: lastName, file: lastFile, line: Number(lastLine), kind };
}
