/** Folded stacks, "root;caller;leaf 123" a line: Pyroscope's text formats `folded` and `lines`. */

import { frameKindOf } from "./pprof.js";
import {
  type DecodedProfile,
  type Figure,
  malformed,
  type ReceivedFrame,
  type ReceivedSample,
  withinLimit,
} from "./received_profile.js";

/** A frame as py-spy and Pyroscope's own SDKs write it: "app.py:handle:12" or "handle (app.py:12)". */
const FILE_FIRST = /^([^\s:]+\.\w+):(.+?)(?::(\d+))?$/;
const FILE_LAST = /^(.*\S) \(([^()]+?)(?::(\d+))?\)$/;

/** `format`: in `lines` each line is a stack that counts once. Throws TidemarkError. */
export function decodeFolded(
  text: string,
  { figure, format }: { figure: Figure; format: "folded" | "lines" },
): DecodedProfile {
  const samples: ReceivedSample[] = [];
  const frames = new Map<string, ReceivedFrame>();
  let depths = 0;
  for (const line of text.split("\n")) {
    if (line.trim() === "") {
      continue;
    }
    withinLimit("samples-per-profile", samples.length + 1);
    const end = format === "lines" ? line.length : line.lastIndexOf(" ");
    const value = format === "lines" ? 1 : Number(line.slice(end + 1));
    if (end < 0 || !(value >= 0 && Number.isFinite(value))) {
      malformed("a line of its folded stacks does not end with a number");
    }
    const names = line.slice(0, end).split(";").reverse();
    withinLimit("stack-depth", names.length);
    depths += names.length;
    withinLimit("frames-per-profile", depths);
    samples.push({
      frames: names.map((name) => frameNamed(name, frames)),
      thread: "",
      labels: [],
      ...{ liveBytes: 0, liveObjects: 0, allocatedBytes: 0, allocatedObjects: 0 },
      [figure]: value,
    });
  }
  return { samples, figures: [figure], timeMs: 0, durationMs: 0, periodBytes: 0 };
}

function frameNamed(name: string, known: Map<string, ReceivedFrame>): ReceivedFrame {
  let frame = known.get(name);
  if (frame === undefined) {
    withinLimit("name-bytes", Buffer.byteLength(name));
    const [, file = "", plain = name, line = "0"] = FILE_FIRST.exec(name) ?? [];
    const [, lastName = plain, lastFile = file, lastLine = line] = FILE_LAST.exec(plain) ?? [];
    frame = {
      function: lastName,
      file: lastFile,
      line: Number(lastLine),
      kind: frameKindOf(lastFile),
    };
    known.set(name, frame);
  }
  return frame;
}
