/** Dumps of real processes: the program's own file is copied, and no file that it only names. */
import { type ChildProcess, spawn } from "node:child_process";
import {
  chownSync,
  linkSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  truncateSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
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
  await vi.waitUntil(() => environment.RANK === undefined || readRank(pid) !== null, {
    timeout: 60_000,
  });
  return pid;
}

const places: [string, string, () => Record<string, string>][] = [
  ["TORCH_FR_DUMP_TEMP_FILE", "dump_", () => ({ TORCH_FR_DUMP_TEMP_FILE: join(folder, "dump_") })],
  [
    "TORCH_NCCL_DEBUG_INFO_TEMP_FILE",
    "dump_",
    () => ({ TORCH_NCCL_DEBUG_INFO_TEMP_FILE: join(folder, "dump_") }),
  ],
  [
    "XDG_CACHE_HOME",
    "torch/comm_lib_trace_rank_",
    () => ({ XDG_CACHE_HOME: folder, HOME: "/nowhere" }),
  ],
  ["HOME", ".cache/torch/comm_lib_trace_rank_", () => ({ HOME: folder })],
];
test.each(places)(
  "the dump of a rank, where torch writes it by %s",
  async (_, start, environment) => {
    const pid = await started({ ...environment(), RANK: "3" });
    const path = join(folder, `${start}3`);
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, "a dump");
    expect(copyFlightRecorder(pid, folder)).toEqual({ name: `flight-recorder-${pid}.dump` });
    expect(readFileSync(join(folder, `flight-recorder-${pid}.dump`), "utf8")).toBe("a dump");
  },
);

test("a program without these variables has its dump in /tmp, and all paths are named", async () => {
  const pid = await started({ HOME: folder, RANK: "987654321" });
  const path = "/tmp/nccl_trace_rank_987654321";
  expect(copyFlightRecorder(pid, folder)).toEqual({
    why: `no dump can be read at ${folder}/.cache/torch/comm_lib_trace_rank_987654321 or ${path}`,
  });
  writeFileSync(path, "an older torch's");
  try {
    expect(copyFlightRecorder(pid, folder)).toEqual({ name: `flight-recorder-${pid}.dump` });
  } finally {
    rmSync(path);
  }
});

const dump = () => join(folder, "dump_0");
const refused: [string, () => void, RegExp][] = [
  ["that is missing", () => {}, /^no dump can be read at .*dump_0$/],
  [
    "of an earlier job",
    () => {
      writeFileSync(dump(), "of last week");
      const before = Date.now() / 1000 - 60;
      utimesSync(dump(), before, before);
    },
    /^its dump is older than the process$/,
  ],
  ["that is a link", () => symlinkSync("/etc/passwd", dump()), /^no dump can be read at .*dump_0$/],
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
  const pid = await started({
    TORCH_NCCL_DEBUG_INFO_TEMP_FILE: join(folder, "dump_"),
    RANK: "0",
  });
  prepare();
  const before = readdirSync(folder);
  expect(copyFlightRecorder(pid, folder)).toEqual({ why: expect.stringMatching(why) });
  expect(readdirSync(folder)).toEqual(before);
});

test("a path outside the program's folder by dots, and a relative one, lead nowhere", async () => {
  for (const start of [`${folder}/../../etc/passw`, "dump_"]) {
    const pid = await started({ TORCH_NCCL_DEBUG_INFO_TEMP_FILE: start, RANK: "0" });
    expect(copyFlightRecorder(pid, folder)).toEqual({ why: `no dump can be read at ${start}0` });
    program?.kill("SIGKILL");
  }
  const pid = await started({});
  expect(copyFlightRecorder(pid, folder)).toEqual({ why: expect.stringContaining("no rank") });
});
