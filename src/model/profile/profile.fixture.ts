/**
 * Profiles for tests, written in a few lines of text: a stack, root first, its live bytes, and deviations from
 * the defaults.
 *
 *     main;load 10
 *     main;load@/srv/app.py:7;libx.so+1f0 4096 domain=native thread=loader
 *     main;parse 0 allocated=500 peak=100 objects=5 pid=43 label=endpoint:/x
 *
 * A frame is FUNCTION (Python, app.py:1), FUNCTION@FILE:LINE, or OBJECT.so+ADDRESS (native).
 */

import { present } from "../base/present.js";
import type { FrameId, StackId, TimeMs } from "../base/units.js";
import { Domain, FrameKind, type Profile, type ProfileTables } from "./profile.js";
import { newSiteTable } from "./site_columns.js";
import { ProfileTablesBuilder } from "./tables_builder.js";

export const FIXTURE_TIME_MS: TimeMs = 1_700_000_000_000;

/** `builder`: tables to add to, for two profiles of one recording. */
export function profileOf(text: string, builder = new ProfileTablesBuilder()): Profile {
  const lines = text
    .split("\n")
    .map((line) => line.trim())
    .filter((line) => line !== "");
  const sites = newSiteTable(lines.length, 2);
  lines.forEach((line, row) => {
    // A file may have a space in its name, and no number behind it: "<frozen importlib._bootstrap>".
    const [, stack = "", live, rest = ""] = /^(.*?) ([\d.]+)(?: (.*))?$/.exec(line) ?? [];
    const words = rest.split(" ");
    const options = new Map(words.map((word) => word.split("=", 2) as [string, string]));
    const bytes = Number(live);
    const number = (key: string, usual: number) => Number(options.get(key) ?? usual);
    const process = processOf(builder, number("pid", 42));
    sites.stack[row] = stackOf(builder, stack);
    sites.process[row] = process;
    sites.thread[row] = threadOf(builder, process, options.get("thread") ?? "main");
    sites.label[row] = labelOf(builder, options.get("label"));
    sites.domain[row] = Domain[(options.get("domain") ?? "python") as keyof typeof Domain];
    sites.liveBytes[row] = bytes;
    sites.liveObjects[row] = bytes > 0 ? number("objects", 1) : 0;
    sites.liveVariance[row] = number("variance", bytes * bytes);
    sites.liveSamples[row] = bytes > 0 ? number("samples", 1) : 0;
    sites.allocatedBytes[row] = number("allocated", bytes);
    sites.allocatedObjects[row] = number("objects", 1);
    sites.allocatedVariance[row] = number("variance", bytes * bytes);
    sites.peakBytes[row] = number("peak", bytes);
    sites.peakObjects[row] = number("objects", 1);
    sites.peakVariance[row] = number("variance", bytes * bytes);
    sites.cohortBytes[row * 2] = bytes;
  });
  const tables: ProfileTables = builder.tables();
  return {
    ...tables,
    timeMs: FIXTURE_TIME_MS,
    durationMs: 1000,
    sites,
    files: newSiteTable(0, 2),
    copies: newSiteTable(0, 2),
    cohorts: [FIXTURE_TIME_MS - 500, FIXTURE_TIME_MS],
    peakMs: tables.processes.map(() => FIXTURE_TIME_MS - 200),
  };
}

function stackOf(builder: ProfileTablesBuilder, text: string): StackId {
  return text === ""
    ? 0
    : text.split(";").reduce((parent, frame) => builder.stack(parent, frameOf(builder, frame)), 0);
}

function frameOf(builder: ProfileTablesBuilder, text: string): FrameId {
  const native = /^(.*\.so)\+([0-9a-f]+)$/.exec(text);
  if (native) {
    const [, file, address] = native as unknown as [string, string, string];
    return builder.frame(
      0,
      builder.string(file),
      0,
      0,
      FrameKind.native,
      Number.parseInt(address, 16),
    );
  }
  const [, name, file = "app.py", line = "1"] = present(/^(.*?)(?:@(.*):(\d+))?$/.exec(text));
  return builder.frame(
    builder.string(present(name)),
    builder.string(file),
    Number(line),
    1,
    FrameKind.python,
    0,
  );
}

function processOf(builder: ProfileTablesBuilder, pid: number): number {
  const known = builder.tables().processes.findIndex((process) => process.pid === pid);
  if (known >= 0) {
    return known;
  }
  return builder.addProcess({
    pid,
    parentPid: 1,
    command: ["python", "app.py"],
    python: "3.11.7",
    startedMs: FIXTURE_TIME_MS - 1000,
    periodBytes: 65536,
  });
}

function threadOf(builder: ProfileTablesBuilder, process: number, name: string): number {
  const threads = builder.tables().threads;
  const known = threads.findIndex((thread) => thread.process === process && thread.name === name);
  const isMain = name === "main";
  return known >= 0
    ? known
    : builder.addThread({ process, tid: 100 + threads.length, name, isMain });
}

function labelOf(builder: ProfileTablesBuilder, text: string | undefined): number {
  if (text === undefined) {
    return 0;
  }
  return text.split(",").reduce((parent, pair) => {
    const [key, value] = pair.split(":", 2) as [string, string];
    return builder.label(parent, builder.string(key), builder.string(value));
  }, 0);
}
