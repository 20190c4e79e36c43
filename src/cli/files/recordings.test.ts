import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it } from "vitest";
import { shellWord } from "../../model/base/shell_word.js";
import { programName } from "../../model/profile/program_name.js";
import type { Recording } from "../../recording/types.js";
import { defaultRecordingName } from "./recording_path.js";
import { parseMoment, splitMoment } from "./recordings.js";

process.env.TZ = "UTC";
const startMs = Date.parse("2026-11-21T10:00:00Z");
const endMs = startMs + 7_200_000;
const recording = { path: "a.tidemark", meta: {}, startMs, endMs } as Recording;

it("a file without a peak has none to show", () => {
  const imported = { tool: "tracemalloc", file: "dump", unknown: ["peak"] };
  const dump = { ...recording, meta: { imported } } as unknown as Recording;
  expect(() => parseMoment("peak", dump)).toThrow(
    /a\.tidemark, imported from tracemalloc, contains no peak/,
  );
  expect(parseMoment("end", dump).moment).toBe("end");
});

it.each([
  ["0s", 0],
  ["90s", 90_000],
  ["+1.5s", 1500],
  ["250ms", 250],
  ["5min", 300_000],
  ["2m", 120_000],
  ["2h", 7_200_000],
  ["-30s", 7_170_000],
  ["01:30", 90_000],
  ["1:00:05", 3_605_000],
  ["2026-11-21T10:00:10Z", 10_000],
  [String(startMs + 42), 42],
  // A second of slack on both sides.
  ["7200.9s", 7_200_000],
])("%s is a moment", (text, afterStart) => {
  expect(parseMoment(text, recording).moment).toBe(startMs + afterStart);
});

it.each([
  ["10:00:05", 5_000],
  ["11:30:00.5", 5_400_500],
  ["12:00:00", 7_200_000],
  ["11:15", 675_000], // minutes and seconds, where the recording is long enough
  ["+10:00:05", null],
  ["-0:10", 7_190_000],
  ["+1:00:00", 3_600_000],
])("%s is a time of day, or of the recording", (text, afterStart) => {
  const read = () => parseMoment(text, recording).moment;
  if (afterStart === null) {
    expect(read).toThrow(/outside a\.tidemark; it covers .* from 2026-11-21 10:00:00 to/);
  } else {
    expect(read()).toBe(startMs + afterStart);
  }
});

it("reads hours and minutes if they are not a time since the start", () => {
  const short = { ...recording, endMs: startMs + 300_000 } as Recording;
  expect(parseMoment("10:03", short).moment).toBe(startMs + 180_000);
  expect(parseMoment("04:00", short).moment).toBe(startMs + 240_000);
});

it("asks for the date if a time occurs on several days", () => {
  const week = { ...recording, endMs: startMs + 7 * 86_400_000 } as Recording;
  expect(() => parseMoment("19:33:00", week)).toThrow(
    /TM-E002 19:33:00 occurs more than once .*; include the date: 2026-11-22T19:33:00/,
  );
  expect(parseMoment("2026-11-22T19:33:00", week).moment).toBe(Date.parse("2026-11-22T19:33:00Z"));
  const night = {
    ...recording,
    startMs: startMs + 13 * 3_600_000,
    endMs: startMs + 15 * 3_600_000,
  };
  expect(parseMoment("00:30:00", night as Recording).moment).toBe(
    Date.parse("2026-11-22T00:30:00Z"),
  );
});

it("knows the end and the peak by name", () => {
  expect(parseMoment("peak", recording)).toEqual({ moment: "peak", name: "peak" });
  expect(parseMoment("end", recording)).toEqual({ moment: "end", name: "end" });
});

it.each(["", "soon", "90", "1:2", "5:61", "1:75:00", "5 parsecs", "2026-99-99", "NaN", "--1s"])(
  "'%s' is not a moment",
  (text) => {
    expect(() => parseMoment(text, recording)).toThrow(/TM-E002 .* is not a moment/);
  },
);

it.each(["3h", "-3h", "2020-01-01"])("%s is outside", (text) => {
  expect(() => parseMoment(text, recording)).toThrow(/TM-E014 .* outside a\.tidemark/);
});

it("splits a moment off, unless a file has the whole name", () => {
  expect(splitMoment("a.tidemark@peak")).toEqual({ path: "a.tidemark", at: "peak" });
  expect(splitMoment("me@host.tidemark@5s")).toEqual({ path: "me@host.tidemark", at: "5s" });
  expect(splitMoment("a.tidemark")).toEqual({ path: "a.tidemark", at: null });
  const folder = mkdtempSync(join(tmpdir(), "tidemark-at-"));
  const whole = join(folder, "me@host.tidemark");
  writeFileSync(whole, "");
  expect(splitMoment(whole)).toEqual({ path: whole, at: null });
  rmSync(folder, { recursive: true });
});

it.each([
  [["python", "app.py", "--port", "80"], "app"],
  [["/usr/bin/python3.11", "-X", "dev", "-u", "srv/main.py"], "main"],
  [["python3", "-m", "pytest", "-x"], "pytest"],
  [["python3.13t", "-c", "print(1)"], "python3.13t"],
  [["/srv/.venv/bin/uvicorn", "app:main"], "uvicorn"],
  [["python3"], "python3"],
])("%j is called %s", (command, name) => {
  expect(programName(command)).toBe(name);
});

it("names a recording by program and local time, without characters special to a shell", () => {
  const now = new Date(2026, 10, 5, 7, 8, 9);
  expect(defaultRecordingName(["python", "app.py"], now)).toBe("app-20261105-070809.tidemark");
  expect(defaultRecordingName(["./a b'c"], now)).toBe("a_b_c-20261105-070809.tidemark");
});

it("quotes what a shell would split", () => {
  expect(["a.py", "a b", "it's", ""].map(shellWord)).toEqual(["a.py", "'a b'", "'it'\\''s'", "''"]);
});
