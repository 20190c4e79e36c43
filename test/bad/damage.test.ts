/** Recordings that were truncated, overwritten, swapped or forged: one clear line, or the part that is intact. */

import { readFileSync, truncateSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, inject, test } from "vitest";
import { summarize } from "../../src/inspect/recorded/summary.js";
import { TidemarkError } from "../../src/model/errors/errors.js";
import { openRecording } from "../../src/record/index.js";
import {
  FILE_HEAD_BYTES,
  FORMAT_VERSION,
  FRAME_HEAD_BYTES,
} from "../../src/recording/frames/frames.js";
import { expectSpeaksClearly } from "../behaviour.js";
import { anyInterpreter } from "../environment.js";
import { execute, record, removeScratch, scratch, tidemark } from "../run.js";

let whole: Buffer;
let folder: string;

beforeAll(async () => {
  folder = scratch();
  const program =
    "import time\nkept = []\nfor number in range(8):\n    kept.append(bytes(4 << 20))\n    time.sleep(0.2)";
  whole = readFileSync((await record([anyInterpreter().path, "-c", program])).path);
});
afterAll(removeScratch);

/** Reads everything: all figures must be valid numbers, and all failures Tidemark's own errors. */
function readAll(path: string): "read" | "damaged" | "refused" {
  try {
    const recording = openRecording(path);
    if (recording.snapshots.length > 0) {
      for (const moment of ["end", "peak"] as const) {
        expectFigures(summarize(recording, moment));
      }
      for (let snapshot = 0; snapshot < recording.snapshots.length; snapshot++) {
        recording.profileOf(snapshot);
      }
    }
    return recording.damage === null ? "read" : "damaged";
  } catch (error) {
    if (!(error instanceof TidemarkError)) {
      throw error;
    }
    expect(error.exitCode).toBe(2);
    expect(error.message).not.toMatch(/\n/);
    expectSpeaksClearly(error.message);
    return "refused";
  }
}

/** No NaN, no infinity, no negative byte counts. */
function expectFigures(value: unknown, name = ""): void {
  if (typeof value === "number") {
    expect(Number.isFinite(value), name).toBe(true);
    if (/Bytes|Objects/.test(name) && !/growth/i.test(name)) {
      expect(value, name).toBeGreaterThanOrEqual(0);
    }
  } else if (typeof value === "object" && value !== null) {
    for (const [key, part] of Object.entries(value)) {
      expectFigures(part, key);
    }
  }
}

describe("in this process", () => {
  test("the undamaged recording is read completely", () => {
    const path = join(folder, "whole.tidemark");
    writeFileSync(path, whole);
    expect(readAll(path)).toBe("read");
  });

  test("truncated at every byte", () => {
    const path = join(folder, "cut.tidemark");
    writeFileSync(path, whole);
    // From the end, because each cut shortens the file. In steps, but at each of the first 600 bytes: frames are small.
    const step = Math.max(1, Math.floor(whole.length / inject("counts").recordingBytes));
    for (let length = whole.length - 1; length >= 0; length -= length < 600 ? 1 : step) {
      truncateSync(path, length);
      const answer = readAll(path);
      if (length < 16) {
        expect(answer, `${length} bytes`).toBe("refused");
      }
    }
  });

  test("one byte changed, anywhere: never read as valid with other values", () => {
    const path = join(folder, "changed.tidemark");
    const step = Math.max(1, Math.floor(whole.length / inject("counts").recordingBytes));
    for (let offset = 0; offset < whole.length; offset += offset < 400 ? 1 : step) {
      const changed = Buffer.from(whole);
      changed.writeUInt8(changed.readUInt8(offset) ^ (1 << (offset % 8)), offset);
      writeFileSync(path, changed);
      expect(readAll(path), `byte ${offset}`).not.toBe("read");
    }
  });

  test("garbage of every length, and garbage after a valid header", () => {
    const path = join(folder, "garbage.tidemark");
    let state = 12345;
    const noise = Buffer.from(
      Array.from({ length: 5000 }, () => {
        state = (Math.imul(state, 1103515245) + 12345) >>> 0;
        return state >>> 24;
      }),
    );
    for (const length of [0, 1, 7, 8, 15, 16, 17, 36, 100, 5000]) {
      writeFileSync(path, noise.subarray(0, length));
      expect(readAll(path), `${length} bytes`).toBe("refused");
      writeFileSync(path, Buffer.concat([whole.subarray(0, 16), noise.subarray(0, length)]));
      expect(readAll(path)).not.toBe(length === 0 ? "" : "read");
    }
    writeFileSync(path, Buffer.concat([whole, noise]));
    expect(readAll(path)).toBe("damaged");
  });
});

describe("by the commands: exit code 2 and one line", () => {
  const commands: [string, (path: string) => string[]][] = [
    ["summary", (path) => ["summary", path]],
    ["summary --json", (path) => ["summary", path, "--json"]],
    ["report", (path) => ["report", path, "-o", join(folder, "report.html")]],
    ["diff", (path) => ["diff", join(folder, "whole.tidemark"), path]],
    ["export", (path) => ["export", path, "--format", "folded", "-o", join(folder, "out.folded")]],
  ];
  const inputs: [string, (path: string) => void][] = [
    [
      "garbage",
      (path) => writeFileSync(path, "this is no recording at all, whatever its name says\n"),
    ],
    ["empty", (path) => writeFileSync(path, "")],
    ["half a head", (path) => writeFileSync(path, whole.subarray(0, 9))],
    ["a later version", (path) => writeFileSync(path, laterVersion(whole))],
  ];

  test.each(commands)("%s", async (name, words) => {
    for (const [kind, make] of inputs) {
      const path = join(folder, `${kind.replaceAll(" ", "-")}.tidemark`);
      make(path);
      const { status, stdout, stderr } = await execute([tidemark, ...words(path)]);
      const context = `${name} of ${kind}: ${stderr}`;
      expect(status, context).toBe(2);
      expect(stdout, context).toBe("");
      expect(stderr.trimEnd().split("\n"), context).toHaveLength(1);
      expect(stderr, context).toMatch(/TM-E00[5-7]/);
      expectSpeaksClearly(stderr);
      if (kind === "a later version") {
        expect(stderr).toMatch(new RegExp(`version 4242.*version ${FORMAT_VERSION};`));
      }
    }
    const missing = await execute([tidemark, ...words(join(folder, "no-such.tidemark"))]);
    expect(missing.status).toBe(2);
    expect(missing.stderr).toMatch(/TM-E003.*no-such\.tidemark/);
    const directory = await execute([tidemark, ...words(folder)]);
    expect(directory.status).toBe(2);
    expect(directory.stderr.trimEnd().split("\n")).toHaveLength(1);
  });

  test("truncated at any place or changed at any byte: what is readable, and one line for what is missing", async () => {
    const path = join(folder, "hurt.tidemark");
    writeFileSync(join(folder, "whole.tidemark"), whole);
    const readers = [
      ["summary", path],
      ["lines", path],
      ["lines", path, "--json"],
      ["diff", join(folder, "whole.tidemark"), path],
      ["diagnose", path],
      ["diagnose", path, "--quiet"],
      ["export", path, "--format", "folded", "-o", "-"],
      ["export", path, "--format", "duckdb", "--force", "--quiet"],
      ["report", path, "--force"],
      ["live", path, "--json"],
    ];
    const at = (share: number) => Math.floor(whole.length * share);
    const changed = Buffer.from(whole);
    changed[at(0.7)] = (changed[at(0.7)] as number) ^ 4;
    for (const bytes of [
      whole.subarray(0, frameEnd(at(0.9))),
      whole.subarray(0, at(0.7)),
      whole.subarray(0, 500),
      changed,
    ]) {
      writeFileSync(path, bytes);
      const outcomes = await Promise.all(
        readers.map(async (words) => ({ words, outcome: await execute([tidemark, ...words]) })),
      );
      for (const { words, outcome } of outcomes) {
        const { status, stdout, stderr } = outcome;
        const said = `${stdout}${stderr}`.replace(/\n +/g, " ");
        expect(said, words.join(" ")).toMatch(
          /hurt\.tidemark is damaged: the frame at byte \d+ .*, the first .* of the run|recorder was killed before hurt\.tidemark was complete/,
        );
        expectSpeaksClearly(said);
        expect(stderr.split("\n").length, stderr).toBeLessThanOrEqual(2);
        expect([0, 2], said).toContain(status);
        expect(status === 0 || stdout === "", said).toBe(true);
      }
    }
  });

  test("a truncated recording: its figures, and one line that says it is truncated", async () => {
    const path = join(folder, "half.tidemark");
    writeFileSync(path, whole.subarray(0, Math.floor(whole.length * 0.7)));
    const { status, stdout, stderr } = await execute([tidemark, "summary", path]);
    expect(status, stderr).toBe(0);
    expectSpeaksClearly(stdout + stderr);
    expect(`${stdout}${stderr}`).toMatch(/cut|ends|damaged|not finished|whole frame/i);
  });
});

/** The end of the frame that contains the byte at `offset`. */
function frameEnd(offset: number): number {
  let end = FILE_HEAD_BYTES;
  while (end <= offset) {
    end += FRAME_HEAD_BYTES + whole.readUInt32LE(end);
  }
  return end;
}

/** The header with another version and the matching checksum. */
function laterVersion(recording: Buffer): Buffer {
  const changed = Buffer.from(recording);
  changed.writeUInt32LE(4242, 8);
  changed.writeUInt32LE(crc32(changed.subarray(0, 12)), 12);
  return changed;
}

/** CRC-32 of zlib and PNG (polynomial 0xEDB88320), independent of the implementation under test. */
function crc32(bytes: Buffer): number {
  let sum = 0xffffffff;
  for (const byte of bytes) {
    sum ^= byte;
    for (let bit = 0; bit < 8; bit++) {
      sum = (sum >>> 1) ^ (sum & 1 ? 0xedb88320 : 0);
    }
  }
  return (sum ^ 0xffffffff) >>> 0;
}
