/** Sites that map files and shared memory, distinguished from the memory that a program allocates. */

import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { float64At, uint32At } from "../src/model/base/columns.js";
import type { DiagnosisJson } from "../src/model/documents/diagnosis_document.js";
import {
  Domain,
  FILES_DOMAIN,
  FrameKind,
  type Profile,
  type SiteTable,
} from "../src/model/profile/profile.js";
import { openRecording } from "../src/record/index.js";
import { python, validate } from "./recorded_app.js";
import { execute, removeScratch, scratch, tidemark } from "./run.js";

const MIB = 2 ** 20;
const folder = scratch();
afterAll(removeScratch);

/** One figure of the sites, summed by innermost Python function. */
function byFunction(
  { stacks, frames, strings }: Profile,
  sites: SiteTable,
  figure: "liveBytes" | "allocatedBytes" = "liveBytes",
): Record<string, number> {
  const sums: Record<string, number> = {};
  for (let row = 0; row < sites.length; row++) {
    let node = uint32At(sites.stack, row);
    while (node > 0 && frames.kind[uint32At(stacks.frame, node)] !== FrameKind.python) {
      node = uint32At(stacks.parent, node);
    }
    const name = strings[uint32At(frames.function, uint32At(stacks.frame, node))] ?? "";
    sums[name] = (sums[name] ?? 0) + float64At(sites[figure], row);
  }
  return sums;
}

/** The larger ones, in MiB. */
function sizes(sums: Record<string, number>): number[] {
  return Object.values(sums)
    .filter((bytes) => bytes > 4 * MIB)
    .map((bytes) => Math.round(bytes / MIB))
    .sort((a, b) => a - b);
}

test("mappings by the site that created them: unmapped ones are gone, and none count as live memory", async () => {
  const program = `import mmap, os, tempfile
from multiprocessing import shared_memory
def file_of(mib):
    file = tempfile.TemporaryFile()
    file.truncate(mib << 20)
    return file
def keep_mapped():
    return [mmap.mmap(file.fileno(), 0) for file in [file_of(8) for _ in range(5)]]
def pass_through():
    for file in [file_of(8) for _ in range(5)]:
        mmap.mmap(file.fileno(), 0).close()
def share():
    return shared_memory.SharedMemory(create=True, size=6 << 20)
def map_log():
    file = file_of(1)
    return mmap.mmap(file.fileno(), 0)
def extend(log):
    for mib in (7, 13):
        log.resize(mib << 20)
kept = keep_mapped()
pass_through()
log = map_log()
extend(log)
shared = share()
memory = bytes(20 << 20)
shared.unlink()
os._exit(0)
`;
  writeFileSync(join(folder, "maps.py"), program);
  const path = join(folder, "maps.tidemark");
  const ran = await execute([tidemark, "run", "-o", path, "--", python, "maps.py"], {
    cwd: folder,
  });
  expect([ran.status, ran.stdout]).toEqual([0, ""]);
  const recording = openRecording(path);
  const profile = recording.profileAt("end");
  expect(new Set(profile.files.domain)).toEqual(new Set([FILES_DOMAIN]));
  expect(profile.sites.domain.every((domain) => domain < FILES_DOMAIN)).toBe(true);
  const mapped = byFunction(profile, profile.files);
  // Every mapping is many sampling periods long, so each is sampled with its exact size.
  expect(mapped.pass_through ?? 0).toBe(0);
  // Growth of a mapping is attributed to the function that resizes it.
  expect(sizes(mapped)).toEqual([6, 12, 40]);
  expect(sizes({ extend: mapped.extend ?? 0 })).toEqual([12]);
  expect(sizes(byFunction(profile, profile.files, "allocatedBytes"))).toEqual([6, 12, 40, 40]);
  const allocated = byFunction(profile, profile.sites, "allocatedBytes");
  expect(Object.keys(mapped).filter((name) => (allocated[name] ?? 0) > 4 * MIB)).toEqual([]);
  expect(recording.snapshots.at(-1)?.liveBytes).toBeCloseTo(
    profile.sites.liveBytes.reduce((sum, bytes) => sum + bytes, 0),
  );
});

test("mappings by a handle of the C library's, as ctypes makes them", async () => {
  const program = `import ctypes, os
libc = ctypes.CDLL("libc.so.6")
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t] + [ctypes.c_int] * 3 + [ctypes.c_long]
libc.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
def reserve(mib):
    return libc.mmap(None, mib << 20, 3, 0x22, -1, 0)
kept = [reserve(3) for _ in range(4)]
for _ in range(5):
    libc.munmap(reserve(4), 4 << 20)
os._exit(0)
`;
  writeFileSync(join(folder, "handle.py"), program);
  const path = join(folder, "handle.tidemark");
  const words = [tidemark, "run", "-o", path, "--", python, "handle.py"];
  expect((await execute(words, { cwd: folder })).status).toBe(0);
  const profile = openRecording(path).profileAt("end");
  expect(new Set(profile.sites.domain)).toContain(Domain.mapped);
  expect(sizes(byFunction(profile, profile.sites))).toContain(12);
  expect(sizes(byFunction(profile, profile.sites, "allocatedBytes"))).toContain(32);
});

test("a leak of mapped files has its function and its holder", async () => {
  const program = `import mmap, os, tempfile, time
parts = {}
def open_part(number):
    with tempfile.TemporaryFile() as file:
        file.write(os.urandom(300_000))
        file.flush()
        parts[number] = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    return sum(parts[number][::4096])
end = time.monotonic() + 20
number = 0
while time.monotonic() < end:
    open_part(number)
    number += 1
    time.sleep(0.1)
`;
  writeFileSync(join(folder, "parts.py"), program);
  await execute([tidemark, "run", "-o", "parts.tidemark", "--", python, "parts.py"], {
    cwd: folder,
  });
  const { status, stdout } = await execute([tidemark, "diagnose", "--json", "parts.tidemark"], {
    cwd: folder,
  });
  expect(status).toBe(0);
  const { verdict, suspects } = validate(stdout, "diagnosis") as unknown as DiagnosisJson;
  expect(verdict.kind).toBe("file-growth");
  expect(suspects[0]?.domain).toBe("files");
  expect(suspects[0]?.stack.map((frame) => frame.function)).toContain("open_part");
  expect(suspects[0]?.holder?.path).toContain("parts");
});
