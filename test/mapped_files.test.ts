/** Who maps files and shared memory, told apart from the memory that a program allocates. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import type { DiagnosisJson } from "../src/model/diagnosis_document.js";
import { FILES_DOMAIN, FrameKind, type Profile } from "../src/model/profile.js";
import { openRecording } from "../src/record/index.js";
import { python, validate } from "./recorded_app.js";
import { execute, removeScratch, scratch, tidemark } from "./run.js";

const MIB = 2 ** 20;
const folder = scratch();
afterAll(removeScratch);

/** Bytes still mapped, by the innermost Python function. */
function mappedBy({ files, stacks, frames, strings }: Profile): Record<string, number> {
  const sums: Record<string, number> = {};
  for (let row = 0; row < files.length; row++) {
    let node = files.stack[row] as number;
    while (node > 0 && frames.kind[stacks.frame[node] as number] !== FrameKind.python) {
      node = stacks.parent[node] as number;
    }
    const name = strings[frames.function[stacks.frame[node] as number] as number] ?? "";
    sums[name] = (sums[name] ?? 0) + (files.liveBytes[row] as number);
  }
  return sums;
}

test("mappings by who made them: what is unmapped is gone, and none of it is live memory", async () => {
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
kept = keep_mapped()
pass_through()
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
  const mapped = mappedBy(profile);
  // Every mapping is many sampling periods long: each is a sample, and stands for itself.
  expect(mapped.pass_through ?? 0).toBe(0);
  const byFunction = Object.entries(mapped).filter(([, bytes]) => bytes > 4 * MIB);
  const sorted = byFunction.map(([, bytes]) => bytes / MIB).sort((a, b) => a - b);
  expect(sorted).toEqual([6, 40]);
  const live = recording.looks.at(-1)?.liveBytes ?? 0;
  expect(live).toBeGreaterThan(18 * MIB);
  expect(live).toBeLessThan(30 * MIB);
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
