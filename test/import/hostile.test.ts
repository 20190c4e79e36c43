/** Files that are damaged, of the wrong kind, or malicious: one line, exit code 2, and little memory. */
import {
  copyFileSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { gunzipSync, gzipSync } from "node:zlib";
import { afterAll, describe, expect, test } from "vitest";
import { decodeLz4 } from "../../src/formats/import/lz4.js";
import { present } from "../../src/model/base/present.js";
import { commandHere } from "../command_here.js";
import { execute, repository, tidemark } from "../run.js";

const folder = mkdtempSync(join(tmpdir(), "tidemark-import-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

async function refusal(name: string, content: string | Uint8Array): Promise<string> {
  const file = join(folder, name);
  writeFileSync(file, content);
  return refusalOf(file);
}

async function refusalOf(file: string, output?: string): Promise<string> {
  // Half of the memory that the largest content needs, and far more than the program itself.
  const outcome = await execute([
    "sh",
    "-c",
    `ulimit -v 40000000; exec "$0" "$@"`,
    tidemark,
    "import",
    file,
    "-f",
    ...(output === undefined ? [] : ["-o", output]),
  ]);
  expect(outcome.status, outcome.stderr).toBe(2);
  expect(outcome.stderr.trim().split("\n")).toHaveLength(1);
  return outcome.stderr;
}

const pickle = (...parts: (string | number[])[]) =>
  Buffer.concat(
    parts.map((part) =>
      typeof part === "string" ? Buffer.from(part, "latin1") : Buffer.from(part),
    ),
  );

describe("files that no tool has written", () => {
  test.each([
    ["empty", "", /TM-E018.*is empty/],
    ["text", "hello world\n", /TM-E018.*not recognized/],
    ["JSON of nobody", '{"a": 1}', /TM-E018/],
    ["zeros", new Uint8Array(5000), /TM-E018/],
    [
      "DHAT of a later version",
      '{"dhatFileVersion":3,"pps":[],"ftbl":[]}',
      /TM-E005.*version is 3/,
    ],
    ["a cut DHAT", '{"dhatFileVersion":2,"pps":[{"tb":1', /TM-E005.*not complete JSON/],
    ["a cut trace", '{"traceEvents": [{"name": "[memory]"', /TM-E005.*not complete JSON/],
    ["a trace without memory", '{"traceEvents": []}', /TM-E014.*profile_memory=True/],
    [
      "a cut massif",
      "desc: x\ncmd: ./a\ntime_unit: i\n#---\nsnapshot=0\nheap_tree=peak\n",
      /TM-E005.*cut off/,
    ],
    [
      "a cut memcheck",
      '<?xml version="1.0"?>\n\n<valgrindoutput>\n<protocoltool>memcheck</protocoltool>',
      /TM-E005.*cut off/,
    ],
    ["a cut objgraph", "digraph ObjectGraph {\n  node[shape=box];\n", /TM-E005.*cut off/],
    [
      "heaptrack that names nothing",
      "v 10400 3\nX ./app\na 10 5\n+ 0\n",
      /TM-E005.*stack 5 is missing/,
    ],
    ["heaptrack of a later version", "v 10400 9\nX ./app\n", /TM-E005.*format version is 9/],
    ["mprof with words", "CMDLINE a\nMEM 1.0 2.0\nMEM x y\n", /TM-E005.*incomplete/],
    ["gzip's magic alone", Buffer.of(0x1f, 0x8b), /TM-E005.*gzip/],
    ["a cut gzip", gzipSync("x".repeat(10_000)).subarray(0, 30), /TM-E005.*gzip/],
    [
      "a memray of a later version",
      pickle("memray\0", [14, 0, 0, 0]),
      /TM-E006.*14.*memray transform/,
    ],
    [
      "a memray without an end of its head",
      pickle("memray\0", [13, 0, 0, 0, 1, 1]),
      /TM-E005.*cut off/,
    ],
  ])("%s", async (name, content, expected) => {
    expect(await refusal(name.replaceAll(" ", "-"), content)).toMatch(expected);
  });

  test("a pickle that would run a command runs nothing", async () => {
    const marker = join(folder, "ran");
    const content = pickle(
      [0x80, 4],
      "cposix\nsystem\n(",
      [0x8c, marker.length + 6],
      `touch ${marker}`,
      "tR.",
    );
    expect(await refusal("harm.pickle", content)).toMatch(/TM-E019.*posix\.system/);
    const named = pickle([0x80, 4], "ctracemalloc\nSnapshot\n(", [0x8c, 1], "x", "tR.");
    expect(await refusal("harm2.pickle", named)).toMatch(/TM-E019.*0x52/);
    expect(() => readFileSync(marker)).toThrow(/ENOENT/);
  });

  test("a file of Tidemark's own, and a script: the message has the command that reads it", async () => {
    const file = join(folder, "massif.out");
    copyFileSync(join(repository, "test/data/import/massif.out"), file);
    expect((await execute([tidemark, "import", file, "-f"])).status).toBe(0);
    expect(await refusalOf(`${file}.tidemark`)).toMatch(
      /TM-E018.*: it is a recording; read it with: tidemark summary \S*massif.out.tidemark\n$/,
    );
    expect(await refusal("app.py", "import json\nprint(json.dumps([]))\n")).toMatch(
      /TM-E018.*: it is a Python script; run it: tidemark run/,
    );
  });

  test("text of other systems: UTF-16, a byte order mark, lines that end in CRLF", async () => {
    const readings = "CMDLINE python app.py\nMEM 5.25 1795640055.1\nMEM 6.5 1795640056.1\n";
    const crlf = readings.replaceAll("\n", "\r\n");
    const bigEndian = Buffer.from(`\ufeff${crlf}`, "utf16le").swap16();
    for (const content of [
      crlf,
      `\ufeff${readings}`,
      Buffer.from(`\ufeff${crlf}`, "utf16le"),
      bigEndian,
    ]) {
      const file = join(folder, "windows.dat");
      writeFileSync(file, content);
      expect((await commandHere("import", file, "-f")).status).toBe(0);
      const { rss } = JSON.parse(
        (await commandHere("summary", `${file}.tidemark`, "--json")).stdout,
      );
      expect([rss.peakBytes, rss.endBytes]).toEqual([6.5 * 2 ** 20, 6.5 * 2 ** 20]);
    }
  });

  test("a link to a missing file", async () => {
    const link = join(folder, "broken.bin");
    symlinkSync("nowhere.bin", link);
    const { status, stderr } = await commandHere("import", link);
    expect([status, stderr]).toEqual([
      2,
      expect.stringMatching(/TM-E003.* a symbolic link to a file that/),
    ]);
  });

  test("a pickle of plain values is sent to the command that reads it", async () => {
    expect(await refusal("plain.pickle", pickle([0x80, 4], "}."))).toMatch(/TM-E016.*tidemark gpu/);
  });

  test("a file that unpacks to more than the limit is refused before it is in memory", async () => {
    const bomb = gzipSync(Buffer.alloc(64 << 20));
    const nested = Buffer.concat(Array.from({ length: 20 }, () => bomb));
    expect(gunzipSync(bomb).length).toBe(64 << 20);
    expect(await refusal("bomb.gz", nested)).toMatch(/TM-E008.*1 GiB/);
  });

  test("a file of 100 GiB is refused without being read", async () => {
    const file = join(folder, "huge.bin");
    writeFileSync(file, "memray\0");
    truncateSync(file, 100 * 2 ** 30);
    expect(await refusalOf(file)).toMatch(/TM-E008/);
  });

  test("a folder and a missing file", async () => {
    expect(await refusalOf(folder)).toMatch(/TM-E004/);
    expect(await refusalOf(join(folder, "none"))).toMatch(/TM-E003/);
  });

  test("pipes, devices and links", async () => {
    const pipe = join(folder, "pipe");
    expect((await execute(["mkfifo", pipe])).status).toBe(0);
    const links = ["loop", "nowhere", "to-pipe"].map((name) => join(folder, name));
    [links[0], join(folder, "none"), pipe].forEach((target, index) => {
      symlinkSync(present(target), present(links[index]));
    });
    const [loop = "", nowhere = "", toPipe = ""] = links;
    for (const path of [pipe, toPipe, "/dev/zero", "/dev/null"]) {
      expect(await refusalOf(path, join(folder, "out.tidemark"))).toMatch(
        /TM-E004.*not a regular file/,
      );
    }
    expect(await refusalOf(loop)).toMatch(/TM-E004/);
    expect(await refusalOf(nowhere)).toMatch(/TM-E003/);
    const link = join(folder, "sample");
    symlinkSync(join(repository, "test/data/import/memray-12.bin"), link);
    expect((await execute([tidemark, "import", link, "-f"])).status).toBe(0);
  });

  test("a name with a line break and bytes that are no UTF-8", async () => {
    expect(await refusal("two\nlines", "v 10400 9\nX ./app\n")).toMatch(/TM-E005/);
    expect(await refusal("odd", Buffer.from("digraph ObjectGraph {\n\xff\xfe", "latin1"))).toMatch(
      /TM-E005.*cut off/,
    );
  });

  test("heads that claim gigabytes", async () => {
    const claims = [
      // Zstandard: a window of 2 TiB; a content size of 2^60 bytes.
      Buffer.from("28b52ffd00f80000000000000000", "hex"),
      Buffer.from("28b52ffde00000000000000010000000", "hex"),
      // LZ4: a block of 2 GiB. A pickle: a text of 2^60 bytes.
      Buffer.from("04224d184040c0ffffff7f", "hex"),
      pickle([0x80, 4, 0x8d, 0, 0, 0, 0, 0, 0, 0, 0x10]),
    ];
    for (const content of claims) {
      expect(await refusal("claim", content)).toMatch(/TM-E0(05|08)/);
    }
  });

  test("content of a gigabyte in an archive of a megabyte: refused within 3 GiB of memory", async () => {
    const part = gzipSync(Buffer.from("{},".repeat(10 << 20)));
    const parts = [gzipSync('{"traceEvents":['), ...Array.from({ length: 7 }, () => part)];
    const file = join(folder, "objects.json.gz");
    writeFileSync(file, Buffer.concat(parts));
    const { stderr } = await execute([
      ...["/usr/bin/env", "NODE_OPTIONS=--max-old-space-size=2048", tidemark, "import", file, "-f"],
    ]);
    expect(stderr).toMatch(/TM-E008.*8 million objects/);
  });
});

describe("a memray file that was cut off or changed", () => {
  const sample = readFileSync(join(repository, "test/data/import/memray-12.bin"));
  const plain = decodeLz4(sample, () => new Error("too large"));

  test("compressed: it is damaged", async () => {
    expect(await refusal("cut.bin", sample.subarray(0, sample.length / 2))).toMatch(
      /TM-E005.*cut off/,
    );
  });

  test("as memray leaves it in a killed program: the complete part, with a note", async () => {
    const file = join(folder, "killed.bin");
    writeFileSync(file, plain.subarray(0, plain.length / 2));
    const outcome = await execute([tidemark, "import", file, "-f"]);
    expect(outcome.status, outcome.stderr).toBe(0);
    const { stdout } = await execute([tidemark, "summary", `${file}.tidemark`, "--json"]);
    expect(JSON.parse(stdout).limits.join()).toMatch(/The file has no end/);
  });

  test("with changed bytes: a recording or one line, never a crash", async () => {
    for (let seed = 1; seed <= 12; seed++) {
      const changed = Buffer.from(plain);
      for (let count = 0; count < 20; count++) {
        changed[100 + ((seed * 7919 + count * 104_729) % (changed.length - 100))] =
          (seed * 31 + count) % 256;
      }
      const file = join(folder, "changed.bin");
      writeFileSync(file, changed);
      const outcome = await execute([tidemark, "import", file, "-f"]);
      expect([0, 2], outcome.stderr).toContain(outcome.status);
      expect(outcome.stderr).not.toMatch(/TM-E001/);
    }
  });
});
