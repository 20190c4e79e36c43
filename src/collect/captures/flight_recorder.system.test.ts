/** Dumps of real processes: the program's own file is copied, and no file that it only names. */
import { type ChildProcess, spawn } from "node:child_process";
import {
  chownSync,
  linkSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { readRank } from "../../linux/index.js";
import { present } from "../../model/base/present.js";
import { copyFlightRecorder } from "./flight_recorder.js";

let folder = "";
let program: ChildProcess | null = null;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "tidemark-dumps-"));
});
afterEach(() => {
  program?.kill("SIGKILL");
  rmSync(folder, { recursive: true });
});

async function started(environment: Record<string, string>): Promise<number> {
  program = spawn("sleep", ["1000"], { env: { PATH: process.env.PATH, ...environment } });
  const pid = present(program.pid);
  await vi.waitUntil(() => environment.RANK === undefined || readRank(pid) !== null);
  return pid;
}

test.each(["TORCH_NCCL_DEBUG_INFO_TEMP_FILE", "TORCH_FR_DUMP_TEMP_FILE"])(
  "the dump of a rank, where %s says",
  async (name) => {
    writeFileSync(join(folder, "dump_3"), "a dump");
    const pid = await started({ [name]: join(folder, "dump_"), RANK: "3" });
    expect(copyFlightRecorder(pid, folder)).toEqual({ name: `flight-recorder-${pid}.dump` });
    expect(readFileSync(join(folder, `flight-recorder-${pid}.dump`), "utf8")).toBe("a dump");
  },
);

const dump = () => join(folder, "dump_0");
const refused: [string, () => void, RegExp][] = [
  ["that is missing", () => {}, /there is no dump/],
  ["that is a link", () => symlinkSync("/etc/passwd", dump()), /there is no dump/],
  [
    "with a second name",
    () => {
      writeFileSync(join(folder, "other"), "of another");
      linkSync(join(folder, "other"), dump());
    },
    /several names/,
  ],
  [
    "that is too large",
    () => {
      writeFileSync(dump(), "");
      truncateSync(dump(), (64 << 20) + 1);
    },
    /its dump has 64 MiB/,
  ],
  ...(process.getuid?.() === 0
    ? [
        [
          "of another user",
          () => {
            writeFileSync(dump(), "theirs");
            chownSync(dump(), 12_345, 12_345);
          },
          /belongs to another user/,
        ] satisfies [string, () => void, RegExp],
      ]
    : []),
];
test.each(refused)("a dump %s is not copied", async (_, prepare, why) => {
  prepare();
  const pid = await started({
    TORCH_NCCL_DEBUG_INFO_TEMP_FILE: join(folder, "dump_"),
    RANK: "0",
  });
  const before = readdirSync(folder);
  expect(copyFlightRecorder(pid, folder)).toEqual({ why: expect.stringMatching(why) });
  expect(readdirSync(folder)).toEqual(before);
});

test("a path outside the program's folder by dots, and a relative one, lead nowhere", async () => {
  for (const start of [`${folder}/../../etc/passw`, "dump_"]) {
    const pid = await started({ TORCH_NCCL_DEBUG_INFO_TEMP_FILE: start, RANK: "0" });
    expect(copyFlightRecorder(pid, folder)).toMatchObject({ why: expect.any(String) });
    program?.kill("SIGKILL");
  }
  const pid = await started({});
  expect(copyFlightRecorder(pid, folder)).toEqual({ why: expect.stringContaining("no rank") });
});
