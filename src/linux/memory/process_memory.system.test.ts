import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { closeSync, copyFileSync, mkdtempSync, readSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, describe, expect, test } from "vitest";
import { anyInterpreter, isRoot } from "../../../test/environment.js";
import { present } from "../../model/base/present.js";
import type { TidemarkError } from "../../model/errors/errors.js";
import { parseMaps } from "./maps.js";
import { MemoryReader } from "./memory_reader.js";
import { openProcessMemory } from "./process_memory.js";

const started: ChildProcess[] = [];

afterEach(() => {
  for (const child of started.splice(0)) {
    child.kill("SIGKILL");
  }
});

/** Starts Python with `source`, which prints one line when it is ready; returns the pid and that line. */
async function startPython(source: string, options: object = {}) {
  const child = spawn(anyInterpreter().path, ["-c", source], {
    stdio: ["pipe", "pipe", "inherit"],
    ...options,
  });
  started.push(child);
  let line = "";
  while (!line.includes("\n")) {
    const [piece] = (await once(child.stdout as NodeJS.ReadableStream, "data")) as [Buffer];
    line += piece.toString();
  }
  return { pid: present(child.pid), line: line.trim(), child };
}

function idOf(action: () => unknown): string {
  try {
    action();
  } catch (error) {
    return (error as TidemarkError).id;
  }
  return "none";
}

describe("maps", () => {
  test("paths with spaces, newlines and words that look like the kernel's", () => {
    const [odd, gone, named, heap] = parseMaps(
      [
        "00400000-00401000 r-xp 00000000 fe:01 12                 /srv/my app\\012 (deleted)/a b",
        "00401000-00402000 rw-s 00001000 fe:01 13                 /srv/x (deleted)",
        "00402000-00403000 ---p 00000000 00:00 0                  [anon:x (deleted)]",
        "7f0000000000-7f0000001000 rw-p 00000000 00:00 0 ",
        "7f0000000800-7f0000002000 rw-p 00000000 00:00 0 ",
        "7f0000002000-7f00000",
      ].join("\n"),
    );
    expect(odd).toMatchObject({
      path: "/srv/my app\n (deleted)/a b",
      deleted: false,
      executable: true,
    });
    expect(gone).toMatchObject({ path: "/srv/x", deleted: true, shared: true, offset: 4096 });
    expect(named).toMatchObject({ path: "[anon:x (deleted)]", deleted: false, readable: false });
    expect(heap).toMatchObject({ start: 0x7f0000000000, path: "", writable: true });
    expect(parseMaps("garbage\n\0\n")).toEqual([]);
  });
});

describe("a live process", () => {
  test("its bytes, its holes, and what is resident", async () => {
    const { pid, line } = await startPython(
      `import ctypes, mmap, sys
text = ctypes.create_string_buffer(b"tide" * 5000)
area = mmap.mmap(-1, 64 * 4096, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
area[3 * 4096] = 1
area[4 * 4096] = 1
area[9 * 4096] = 1
area_at = ctypes.addressof(ctypes.c_char.from_buffer(area))
print(ctypes.addressof(text), area_at, flush=True)
sys.stdin.read()`,
    );
    const [text, area] = line.split(" ").map(Number) as [number, number];
    const memory = openProcessMemory(pid);
    const reader = new MemoryReader(memory);
    expect(Buffer.from(reader.bytes(text, 20_000)).toString()).toBe("tide".repeat(5000));
    expect(reader.cstring(text, 20_001)).toBe("tide".repeat(5000));
    expect(idOf(() => reader.cstring(text, 100))).toBe("TM-E024");
    // Every distance from the end of a page, including values that extend over two pages.
    for (let offset = 0; offset < 8192; offset++) {
      const expected = Buffer.from("tidetidetide").subarray(offset % 4);
      expect(reader.uint32(text + offset)).toBe(expected.readUInt32LE(0));
      expect(reader.uint64(text + offset)).toBe(Number(expected.readBigUInt64LE(0)));
      expect(reader.uint16(text + offset)).toBe(expected.readUInt16LE(0));
    }
    expect(idOf(() => reader.pointer(8))).toBe("TM-E024");
    expect(idOf(() => reader.pointer(2 ** 60))).toBe("TM-E024");
    expect(idOf(() => reader.bytes(text, 2 ** 40))).toBe("TM-E024");
    expect(memory.readInto(4096, new Uint8Array(16))).toBe(0);
    expect(memory.resident(area, area + 64 * 4096)).toEqual([
      { start: area + 3 * 4096, end: area + 5 * 4096 },
      { start: area + 9 * 4096, end: area + 10 * 4096 },
    ]);
    expect(memory.resident(area + 4 * 4096, area + 9 * 4096)).toEqual([
      { start: area + 4 * 4096, end: area + 5 * 4096 },
    ]);
    memory.close();
  });

  test("after its end, and after exec, nothing is readable", async () => {
    const { pid, child } = await startPython(
      "import os, sys; print(1, flush=True); sys.stdin.readline(); os.execv('/bin/sleep', ['sleep', '60'])",
    );
    const memory = openProcessMemory(pid);
    const start = memory.mappings[0]?.start ?? 0;
    expect(memory.readInto(start, new Uint8Array(16))).toBe(16);
    child.stdin?.write("\n");
    await expect.poll(() => memory.refresh()).toBe(false);
    expect(memory.readInto(start, new Uint8Array(16))).toBe(0);
    memory.close();
    child.kill("SIGKILL");
    await once(child, "exit");
    expect(idOf(() => openProcessMemory(pid))).toBe("TM-E020");
  });

  test("a main thread that has ended does not hide the others' memory", async () => {
    const { pid } = await startPython(
      `import ctypes, threading, time
def run():
    while open('/proc/self/stat').read().rsplit(')')[1].split()[0] != 'Z': time.sleep(0.01)
    print(1, flush=True)
    time.sleep(600)
threading.Thread(target=run).start()
ctypes.CDLL(None).syscall(60, 0)`,
    );
    const memory = openProcessMemory(pid);
    expect(memory.mappings.length).toBeGreaterThan(5);
    expect(memory.refresh()).toBe(true);
    memory.close();
  });

  test.skipIf(!isRoot)("another user's process is refused with the reason", async () => {
    const { pid } = await startPython("print(1, flush=True); import sys; sys.stdin.read()");
    const saved = present(process.getuid?.());
    process.seteuid?.(65534);
    try {
      expect(() => openProcessMemory(pid)).toThrowError(/^TM-E021 no permission to read process/);
    } finally {
      process.seteuid?.(saved);
    }
  });

  test("a mapped file can be opened even if its name was removed", async () => {
    const folder = mkdtempSync(join(tmpdir(), "tidemark-memory-"));
    try {
      const name = join(folder, "a file\nof two lines");
      writeFileSync(name, "the first bytes".padEnd(8192, "."));
      const { pid, child } = await startPython(
        `import mmap, os, sys
area = mmap.mmap(os.open(sys.argv[1] if len(sys.argv) > 1 else os.environ['NAME'], os.O_RDONLY), 8192, prot=mmap.PROT_READ)
print(1, flush=True)
sys.stdin.read()`,
        { env: { ...process.env, NAME: name } },
      );
      const memory = openProcessMemory(pid);
      const mapping = memory.mappings.find(({ path }) => path === name);
      expect(mapping?.deleted).toBe(false);
      const read = () => {
        const descriptor = mapping === undefined ? null : memory.openFile(mapping);
        if (descriptor === null) {
          return null;
        }
        const bytes = Buffer.alloc(9);
        readSync(descriptor, bytes, 0, 9, 0);
        closeSync(descriptor);
        return bytes.toString();
      };
      expect(read()).toBe("the first");
      rmSync(name);
      copyFileSync("/bin/true", name); // another file of the same name
      // map_files leads to a file without a name if the kernel permits it.
      expect([null, "the first"]).toContain(read());
      if (isRoot) {
        expect(read()).toBe("the first");
      }
      child.kill("SIGKILL");
      memory.close();
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  });
});
