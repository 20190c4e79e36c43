/** A full disk, a file system that fails, a clock that jumps: nothing that a real server acknowledged is lost or doubled. */
import { execFileSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import { appendFileSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { itemAt } from "../../src/model/base/columns.js";
import type { ProfileAnswer } from "../../src/model/wire/services.js";
import { FILE_HEAD_BYTES, FRAME_HEAD_BYTES } from "../../src/recording/frames/frames.js";
import { streamName } from "../../src/recording/sender/stream_name.js";
import { streamBytes } from "../../src/recording/streams.fixture.js";
import { isRoot } from "../environment.js";
import { removeScratch, scratch } from "../run.js";
import { ask, post, type RunningServer, startServer } from "./running_server.js";

afterAll(removeScratch);

const SECOND = 1000;
const PROFILES = 60;
const START = Date.now() - PROFILES * SECOND;
const BYTES = 1e7;

const names = Array.from({ length: PROFILES }, () => randomBytes(100).toString("hex"));
/** Two programs whose frames do not compress. Each profile adds a function. */
const streams = [1, 2].map((pid) =>
  streamBytes({
    service: "shop",
    pid,
    startedMs: START,
    profiles: Array.from({ length: PROFILES }, (_, n) => [
      n * SECOND,
      Array.from(
        { length: n + 1 },
        (_each, at) => `main;f${at}_${names[at]} ${BYTES} allocated=${BYTES} variance=1`,
      ).join("\n"),
    ]),
    endedAfterMs: PROFILES * SECOND,
  }),
);

/** Sends each stream up to a share of it, frame by frame, as far as the server accepts it. */
class Senders {
  readonly acknowledged = streams.map(() => 0);

  /** @returns the statuses of the answers. */
  async send(url: string, share: number): Promise<Set<number>> {
    const statuses = new Set<number>();
    for (const [at, bytes] of streams.entries()) {
      for (let offset = itemAt(this.acknowledged, at); offset < bytes.length * share; ) {
        const stream = streamName(bytes);
        const part = frameAt(bytes, offset);
        const { status, answer } = await post(url, part, { offset, stream });
        statuses.add(status);
        if (status !== 200) {
          break;
        }
        // What is acknowledged may be sent again.
        expect((await post(url, part, { offset, stream })).status).toBe(200);
        offset = answer.nextOffset ?? offset;
        this.acknowledged[at] = offset;
      }
    }
    return statuses;
  }
}

function frameAt(bytes: Buffer, offset: number): Buffer {
  let end = offset === 0 ? FILE_HEAD_BYTES : offset;
  for (let count = 0; count < (offset === 0 ? 2 : 1) && end < bytes.length; count++) {
    end += FRAME_HEAD_BYTES + bytes.readUInt32LE(end);
  }
  return bytes.subarray(offset, end);
}

const allocated = async ({ url }: RunningServer) => {
  const window = `from=${START - SECOND}&to=${START + 2 * PROFILES * SECOND}`;
  const { body } = await ask(`${url}/api/v1/profile?service=shop&${window}`);
  return Math.round((body as ProfileAnswer).allocatedBytes);
};
const ALL = streams.length * PROFILES * BYTES;

/**
 * The server's report of a frame that it could not keep. A stream whose earlier rows the database could not write, because
 * the disk failed within the second between their acknowledgement and the database, is read again before it is appended to.
 */
const notKept = (reason: RegExp) =>
  new RegExp(`stream \\w+ (is not stored|cannot be read again): .*(${reason.source})`);

/** A new server accepts what is left, and everything is there once after it was killed. */
async function takesTheRest(data: string, senders: Senders): Promise<void> {
  const first = await startServer(data);
  expect(await senders.send(first.url, 1)).toEqual(new Set([200]));
  await first.kill();
  const second = await startServer(data);
  await expect.poll(() => allocated(second)).toBe(ALL);
  await second.stop();
}

test.skipIf(!isRoot)(
  "a full disk is reported, and the rest arrives once there is room",
  async () => {
    const folder = scratch();
    const disk = join(folder, "disk");
    mkdirSync(disk);
    execFileSync("mount", ["-t", "tmpfs", "-o", "size=64m", "tmpfs", disk]);
    try {
      const data = join(disk, "data");
      const ballast = join(disk, "ballast");
      const server = await startServer(data);
      const senders = new Senders();
      expect(await senders.send(server.url, 0.3)).toEqual(new Set([200]));
      fill(ballast);
      expect(await senders.send(server.url, 1)).toContain(503);
      expect((await ask(`${server.url}/healthz`)).status).toBe(200);
      await expect.poll(server.said).toMatch(notKept(/ENOSPC|No space left on device/));
      await server.kill();
      // A server that starts on a full disk either runs or ends with one line; it loses nothing.
      const started = await startServer(data).catch((error: Error) => error);
      if (started instanceof Error) {
        expect(started.message.trim().split("\n").at(-1)).toMatch(/TM-E\d+/);
      } else {
        await started.kill();
      }
      rmSync(ballast);
      await takesTheRest(data, senders);
    } finally {
      execFileSync("umount", ["--lazy", disk]);
    }
  },
);

test.skipIf(!isRoot)(
  "a folder that cannot be written is refused in one line, and unchanged",
  async () => {
    const folder = scratch();
    execFileSync("mount", ["-t", "tmpfs", "-o", "size=64m", "tmpfs", folder]);
    try {
      const data = join(folder, "data");
      let server = await startServer(data);
      await new Senders().send(server.url, 1);
      await server.stop();
      execFileSync("mount", ["-o", "remount,ro", folder]);
      const refused = await startServer(data).catch((error: Error) => error.message);
      expect(refused).toMatch(/TM-E\d+ .*(Read-only|EROFS|read-only)/);
      expect(String(refused).trim().split("\n")).toHaveLength(1);
      execFileSync("mount", ["-o", "remount,rw", folder]);
      server = await startServer(data);
      expect(await allocated(server)).toBe(ALL);
      await server.stop();
    } finally {
      execFileSync("umount", ["--lazy", folder]);
    }
  },
);

test("writes that the file system refuses are not acknowledged, and the next start reports what it recovers", async () => {
  const folder = scratch();
  let server = await startServer(folder);
  const senders = new Senders();
  await senders.send(server.url, 0.3);
  // Files may not grow beyond this: EFBIG, in the middle of a frame.
  limitFiles(server, itemAt(senders.acknowledged, 0) + 100);
  expect(await senders.send(server.url, 1)).toContain(503);
  await expect.poll(server.said).toMatch(notKept(/EFBIG|File too large/));
  expect((await ask(`${server.url}/healthz`)).status).toBe(200);
  await server.kill();
  // What a crash leaves of a frame, and a folder where a file would be.
  appendFileSync(
    join(folder, "streams", `${streamName(itemAt(streams, 0))}.tidemark`),
    itemAt(streams, 0).subarray(itemAt(senders.acknowledged, 0)).subarray(0, 50),
  );
  mkdirSync(join(folder, "days", "2026-01-01.1h.unfinished", "odd"), { recursive: true });
  server = await startServer(folder);
  await expect.poll(server.said).toMatch(/cut 50 bytes of a frame that was not acknowledged/);
  expect(await senders.send(server.url, 1)).toEqual(new Set([200]));
  await expect.poll(() => allocated(server)).toBe(ALL);
  await server.stop();
});

test.skipIf(!canMountImages())(
  "a disk that fails with EIO is reported, and the rest arrives once it works again",
  async () => {
    const folder = scratch();
    const image = join(folder, "image");
    const disk = join(folder, "disk");
    mkdirSync(disk);
    makeImage(image);
    const mount = () => execFileSync("mount", ["-o", "loop", image, disk]);
    mount();
    try {
      const data = join(disk, "data");
      const server = await startServer(data);
      const senders = new Senders();
      expect(await senders.send(server.url, 0.3)).toEqual(new Set([200]));
      failDisk(disk);
      expect(await senders.send(server.url, 1)).toEqual(new Set([503]));
      await expect.poll(server.said).toMatch(notKept(/EIO/));
      expect((await ask(`${server.url}/healthz`)).status).toBe(200);
      const refused = await startServer(join(disk, "other")).catch(({ message }) => message);
      expect(refused).toMatch(/TM-E\d+ [^\n]*i\/o error\n?$/);
      await server.kill();
      execFileSync("umount", [disk]);
      mount();
      await takesTheRest(data, senders);
    } finally {
      execFileSync("umount", ["--lazy", disk]);
    }
  },
);

test("a clock that jumps by hours and days, while it runs and between two starts", async () => {
  const folder = scratch();
  const offset = join(folder, "offset");
  const library = shiftedClock(folder);
  writeFileSync(offset, " ".repeat(16));
  // In place: the server has mapped the file.
  const setClock = (hours: number) =>
    writeFileSync(offset, `${hours * 3600}`.padEnd(16), { flag: "r+" });
  const config = join(folder, "serve.yaml");
  writeFileSync(config, "keep: 2d\nkeep_recordings: 2d\n");
  const start = () =>
    startServer(join(folder, "data"), {
      options: ["--config", config],
      env: { LD_PRELOAD: library, SHIFTED_CLOCK: offset },
    });
  setClock(0);
  let server = await start();
  const senders = new Senders();
  let share = 0;
  const sendMore = async () => {
    share += 0.1;
    expect(await senders.send(server.url, share)).toEqual(new Set([200]));
  };
  await sendMore();
  for (const hours of [5, -7, 40 * 24, -3 * 24]) {
    setClock(hours);
    await sendMore();
  }
  await server.kill();
  // Retention runs at each start.
  for (const hours of [40 * 24, -3 * 24]) {
    setClock(hours);
    server = await start();
    await expect
      .poll(server.said)
      .toMatch(/the clock is \d+ min (ahead of|behind) the last known time/);
    await sendMore();
    await server.stop();
  }
  setClock(0);
  server = await start();
  expect(await senders.send(server.url, 1)).toEqual(new Set([200]));
  await server.kill();
  server = await start();
  await expect.poll(() => allocated(server)).toBe(ALL);
  await server.stop();
});

/** A file with an empty file system, ext4. */
function makeImage(path: string): void {
  execFileSync("truncate", ["-s", "128m", path]);
  execFileSync("mkfs.ext4", ["-q", path]);
}

function canMountImages(): boolean {
  const folder = mkdtempSync(join(tmpdir(), "tidemark-image-"));
  const image = join(folder, "image");
  try {
    makeImage(image);
    execFileSync("mount", ["-o", "loop", image, folder], { stdio: "ignore" });
    execFileSync("umount", [folder]);
    return true;
  } catch {
    return false;
  } finally {
    rmSync(folder, { recursive: true });
  }
}

/** Makes the file system of a folder answer EIO until it is mounted again (EXT4_IOC_SHUTDOWN, without a flush). */
function failDisk(folder: string): void {
  const program = `
import fcntl, os, struct, sys
fcntl.ioctl(os.open(sys.argv[1], os.O_RDONLY), 0x8004587D, struct.pack("I", 2))
`;
  execFileSync("python3", ["-c", program, folder]);
}

/** A library that adds the seconds of a file to the clock of a process. */
function shiftedClock(folder: string): string {
  const source = join(folder, "clock.c");
  const library = join(folder, "clock.so");
  writeFileSync(
    source,
    `#define _GNU_SOURCE
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>
static long shift(void) {
  static const char *text;
  if (!text) {
    const char *path = getenv("SHIFTED_CLOCK");
    int file = path ? open(path, O_RDONLY) : -1;
    void *page = file < 0 ? MAP_FAILED : mmap(0, 4096, PROT_READ, MAP_SHARED, file, 0);
    text = page == MAP_FAILED ? "0" : page;
  }
  return atol(text);
}
int clock_gettime(clockid_t clock, struct timespec *time) {
  int result = syscall(SYS_clock_gettime, clock, time);
  if (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE) time->tv_sec += shift();
  return result;
}
int gettimeofday(struct timeval *restrict time, void *restrict zone) {
  int result = syscall(SYS_gettimeofday, time, zone);
  time->tv_sec += shift();
  return result;
}
`,
  );
  execFileSync("cc", ["-shared", "-fPIC", "-O1", "-o", library, source]);
  return library;
}

function limitFiles({ child }: RunningServer, bytes: number): void {
  execFileSync("prlimit", ["--pid", String(child.pid), `--fsize=${bytes}:unlimited`]);
}

/** Writes a file until the disk is full. */
function fill(path: string): void {
  for (let size = 1 << 20; size > 0; size >>= 1) {
    try {
      for (;;) {
        appendFileSync(path, Buffer.alloc(size));
      }
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "ENOSPC") {
        throw error;
      }
    }
  }
}
