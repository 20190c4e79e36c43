import { describe, expect, test } from "vitest";
import type { Memory } from "../../linux/index.js";
import { describeMainThread, waitText } from "./main_thread.js";

const memory = {
  mappings: [{ start: 0x7f0000000000, end: 0x7f0000200000, path: "/usr/lib/libc.so.6" }],
} as unknown as Memory;

describe("what a thread waits in, from /proc/PID/syscall", () => {
  test.each([
    ["232 0x3 0x7ffd 0x40 0xffffffff 0x0 0x0 0x7ffd1000 0x7f0000101234", "epoll_wait (libc.so.6)"],
    ["232 0x3 0x7ffd 0x40 0xffffffff 0x0 0x0 0x7ffd1000 0x55d000000000", "epoll_wait"],
    ["451 0x3 0x0 0x0 0x0 0x0 0x0 0x7ffd1000 0x7f0000101234", "system call 451 (libc.so.6)"],
    // Stopped in its own code, or waiting for a page.
    ["-1 0x7ffd1000 0x7f0000101234", ""],
    ["running", ""],
    ["", ""],
  ])("%s", (text, wait) => {
    expect(waitText(`${text}\n`, memory)).toBe(wait);
  });
});

test("a main thread is described by what it did when its stack was copied", () => {
  const at = ", at hash_lookup (python3.12)";
  expect(describeMainThread(process.pid, memory, at, "")).toBe(
    `its main thread is running C code${at}`,
  );
  expect(describeMainThread(process.pid, memory, "", "read (libc.so.6)")).toBe(
    "its main thread is waiting in read (libc.so.6)",
  );
});

test("a stopped main thread is described as stopped while it runs for a moment after a release", () => {
  expect(describeMainThread(process.pid, memory, "", "read (libc.so.6)", "T")).toBe(
    "it is stopped (SIGSTOP or Ctrl-Z)",
  );
});
