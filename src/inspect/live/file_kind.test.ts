import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { identifyFile } from "./file_kind.js";

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "tidemark-kind-"));
});
afterAll(() => rmSync(folder, { recursive: true }));

/** The head of an ELF file of this type (2 program, 4 core). */
function elf(type: number): Buffer {
  const head = Buffer.alloc(64);
  head.write("\x7fELF\x02\x01\x01", "latin1");
  head.writeUInt16LE(type, 16);
  return head;
}

const LOG = "step 1\n".repeat(30_000);
const KINDS: [string, string | Buffer, string][] = [
  ["a.json", "TIDEMARK\x05\0\0\0", "recording"],
  ["b.tidemark", "TIDEHEAP\x01\0\0\0", "saved heap"],
  ["c", "TMRKPOOL\0\0", "pool"],
  ["d.py", elf(4), "core"],
  ["e", elf(2), "program"],
  ["f.tidemark", Buffer.from([0x80, 4, 0x7d, 0x2e]), "pickle"],
  ["g", gzipSync(Buffer.from([0x80, 2, 0x7d, 0x2e])), "pickle"],
  ["h", gzipSync(Buffer.from([0x0a, 4, 8, 1, 16, 2, 0x1a, 0])), "pprof"],
  ["i", Buffer.from([0x0a, 4, 8, 1, 16, 2, 0x1a, 0]), "pprof"],
  ["j", '{"$schema": "https://www.speedscope.app/file-format-schema.json"}', "speedscope"],
  ["k", '{\n  "schema": "tidemark.summary/1"}', "document"],
  ["l", '[{"a": 1}]', "JSON"],
  ["m", "PK\x03\x04rest", "zip"],
  ["n.py", "print()\n", "Python"],
  ["o", "#!/usr/bin/env python3\n", "Python"],
  ["p.log", `${LOG}torch.OutOfMemoryError: CUDA out of memory.\n`, "out-of-memory log"],
  ["q.log", LOG, "text"],
  ["r.gz", gzipSync(LOG), "text"],
  ["s.tidemark", "", "empty"],
  ["t.gz", Buffer.from([0x1f, 0x8b, 8, 0]), "cut off"],
  ["u", Buffer.from([1, 0, 2, 0]), "unknown"],
  ["v.html", '<!doctype html>\n<meta name="generator" content="Tidemark" />', "page"],
  ["w.html", "<!doctype html><title>other</title>", "text"],
];

describe("identifyFile", () => {
  it.each(KINDS)("%s", (name, content, kind) => {
    writeFileSync(
      join(folder, name),
      typeof content === "string" ? Buffer.from(content, "latin1") : content,
    );
    expect(identifyFile(join(folder, name))).toBe(kind);
  });

  it("handles non-files and missing files", () => {
    mkdirSync(join(folder, "x"));
    expect(identifyFile(join(folder, "x"))).toBe("folder");
    expect(identifyFile("/dev/null")).toBe("special");
    expect(() => identifyFile(join(folder, "y"))).toThrow(/TM-E003/);
    expect(() => identifyFile(join(folder, "n.py", "z"))).toThrow(/TM-E004/);
  });
});
