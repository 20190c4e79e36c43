/**
 * Every importer with damaged, malicious and odd versions of a real file (test/data/import): each ends in one line of
 * a TidemarkError or in a recording whose figures are possible.
 */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { gunzipSync, gzipSync } from "node:zlib";
import { afterAll, describe, expect, test } from "vitest";
import { present } from "../../model/base/present.js";
import { TidemarkError } from "../../model/errors/errors.js";
import type { PlainValue } from "./importer.js";
import { type ForeignRecording, PROFILE_IMPORTERS, readForeign } from "./index.js";
import { readForeignFile } from "./input.js";

interface Sample {
  readonly importer: string;
  readonly file: string;
  readonly value?: PlainValue;
  /** Of the part before the cut: "refused"; "noted": imported with a note; "shorter": lines are records, and complete ones are imported. */
  readonly cut?: "refused" | "noted" | "shorter";
  /** A figure in the text, the number being its first group; none in binary formats. */
  readonly figure?: RegExp;
  /** Odd figures that are possible in this format: a negative one is a free, 1e400 a hexadecimal number. */
  readonly possible?: readonly string[];
  /** The version in the text, with another one. */
  readonly version?: readonly [RegExp, string];
}

const SAMPLES: readonly Sample[] = [
  { importer: "tracemalloc", file: "tracemalloc.pickle.gz" },
  { importer: "memray", file: "memray-11.bin", cut: "noted" },
  { importer: "memray", file: "memray-12.bin", cut: "noted" },
  { importer: "memray", file: "memray-13.bin", cut: "noted" },
  { importer: "memray", file: "memray-python.bin", cut: "noted" },
  { importer: "memray", file: "memray-aggregated.bin" },
  { importer: "memory_profiler", file: "mprofile.dat", cut: "shorter", figure: /MEM (\S+)/ },
  { importer: "scalene", file: "scalene.json.gz", figure: /"n_malloc_mb": (4\d\.\d+)/ },
  { importer: "massif", file: "massif.out", cut: "shorter", figure: /mem_heap_B=(\d+)/ },
  { importer: "massif", file: "massif.out", cut: "shorter", figure: /\n n\d: (\d+)/ },
  { importer: "memcheck", file: "memcheck.xml", figure: /<leakedbytes>(\d+)/ },
  {
    importer: "dhat",
    file: "dhat.out",
    figure: /"tb":(\d+)/,
    version: [/"dhatFileVersion":2/, '"dhatFileVersion":3'],
  },
  { importer: "dhat", file: "dhat.out", figure: /"eb":(\d+)/ },
  { importer: "dhat", file: "dhat-copy.out", figure: /"tb":(550000)/ },
  {
    importer: "heaptrack",
    file: "heaptrack.zst",
    cut: "noted",
    figure: /\na (\w+) /,
    possible: ["1e400", "1e308"],
    version: [/^v (\w+) 3/, "v $1 4"],
  },
  { importer: "pprof", file: "go.pb.gz" },
  { importer: "pprof", file: "jax.pb.gz" },
  {
    importer: "speedscope",
    file: "memray.speedscope.json.gz",
    value: "peak",
    figure: /"weights": \[(\d+)/,
  },
  { importer: "torch memory timeline", file: "torch_timeline.json.gz", figure: /\[\[0, (\d+)/ },
  {
    importer: "torch memory timeline",
    file: "torch_timeline.raw.json.gz",
    figure: /\[\[-1, 1, (\d+)/,
    possible: ["-1"],
  },
  {
    importer: "torch profiler",
    file: "torch_trace.json.gz",
    figure: /"Bytes": (\d+)/,
    possible: ["-1"],
  },
  {
    importer: "TensorFlow memory profile",
    file: "tensorflow_memory_profile.json.gz",
    figure: /"allocationBytes": ?"(\d+)"/,
  },
  { importer: "TensorFlow trace", file: "tensorflow.xplane.pb.gz" },
  { importer: "objgraph", file: "objgraph.dot" },
  { importer: "folded", file: "py-spy.raw", value: "live", cut: "shorter", figure: /\) (\d+)\n/ },
];

const data = fileURLToPath(new URL("../../../test/data/import/", import.meta.url));
const folder = mkdtempSync(join(tmpdir(), "tidemark-hostile-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** The recording, or the error, which is one line that a user can read. */
function outcomeOf(content: Uint8Array, { value = null }: { value?: PlainValue | null } = {}) {
  const file = join(folder, "hostile");
  writeFileSync(file, content);
  try {
    const recording = readForeign(file, { value });
    requirePossible(recording);
    return recording;
  } catch (error) {
    if (!(error instanceof TidemarkError)) {
      throw error;
    }
    expect(error.id, error.message).toMatch(/^TM-E0(05|06|08|14|16|18|19)$/);
    expect(error.exitCode).toBe(2);
    expect(error.message).not.toMatch(/\n|undefined|\[object/);
    expect(error.message.length).toBeLessThan(600);
    return error;
  }
}

function requirePossible({ snapshots, metrics, lines, startedMs, endedMs }: ForeignRecording) {
  const possible = (figure: number) => figure >= 0 && figure <= Number.MAX_SAFE_INTEGER;
  const figures = snapshots.flatMap(({ sites }) => [
    ...sites.liveBytes,
    ...sites.liveObjects,
    ...sites.peakBytes,
    ...sites.peakObjects,
    ...sites.allocatedBytes,
    ...sites.allocatedObjects,
  ]);
  const ofLines = lines.flatMap(({ peakBytes, copiedBytes }) => [peakBytes ?? 0, copiedBytes ?? 0]);
  const readings = metrics.flatMap(({ timeMs, value }) => [timeMs, value]);
  const all = [...figures, ...ofLines, ...readings, startedMs, endedMs];
  expect(all.filter((figure) => !possible(figure))).toEqual([]);
  expect(endedMs).toBeGreaterThanOrEqual(startedMs);
}

const contentOf = ({ file }: Sample) => readForeignFile(join(data, file)).bytes;
const liveBytesOf = ({ snapshots }: ForeignRecording) =>
  [...(snapshots.at(-1)?.sites.liveBytes ?? [])].reduce((sum, bytes) => sum + bytes, 0);

/** A Zstandard frame of one segment with stored blocks (RFC 8878, 3.1.1). */
function zstandardOf(content: Uint8Array): Buffer {
  const head = Buffer.from("28b52ffda000000000", "hex");
  head.writeUInt32LE(content.length, 5);
  const blocks: Uint8Array[] = [];
  for (let at = 0; at < content.length; at += 1 << 17) {
    const block = content.subarray(at, at + (1 << 17));
    const last = at + block.length === content.length ? 1 : 0;
    const size = Buffer.alloc(3);
    size.writeUIntLE((block.length << 3) | last, 0, 3);
    blocks.push(size, block);
  }
  return Buffer.concat([head, ...blocks]);
}

/** Numbers that look random and are the same in each run. */
function* numbers(seed: number): Generator<number> {
  for (let state = seed * 2654435761 + 1; ; ) {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    yield state;
  }
}

test("every importer has a sample", () => {
  expect([...new Set(SAMPLES.map(({ importer }) => importer))].sort()).toEqual(
    PROFILE_IMPORTERS.map(({ name }) => name).sort(),
  );
});

describe.each(SAMPLES)("$importer: $file", (sample) => {
  const content = contentOf(sample);
  const isText = sample.figure !== undefined || sample.importer === "objgraph";
  const text = content.toString("latin1");
  const outcome = (changed: Uint8Array) => outcomeOf(changed, sample);
  const ofText = (changed: string) => outcome(Buffer.from(changed, "latin1"));

  test("as the tool wrote it", () => {
    const file = readForeignFile(join(data, sample.file));
    const found = PROFILE_IMPORTERS.find((importer) => importer.recognizes(file));
    expect(found?.name).toBe(sample.importer);
    expect(outcome(content)).not.toBeInstanceOf(TidemarkError);
    expect(outcome(content.subarray(0, 0))).toMatchObject({ id: "TM-E018" });
  });

  test("compressed again", () => {
    const packed = readFileSync(join(data, sample.file));
    for (const again of [gzipSync(packed), zstandardOf(packed), zstandardOf(gzipSync(packed))]) {
      expect(outcome(again)).not.toBeInstanceOf(TidemarkError);
      expect(readForeignFile(join(folder, "hostile")).bytes.equals(content)).toBe(true);
    }
  });

  test("cut off at many points", () => {
    const whole = outcome(content) as ForeignRecording;
    const points = [
      ...Array.from({ length: 24 }, (_, index) => Math.floor((content.length * index) / 24)),
      ...[1, 2, 3, 4, 8, 16].map((bytes) => content.length - bytes),
    ];
    for (const point of points) {
      const cut = outcome(content.subarray(0, point));
      if (!(cut instanceof TidemarkError)) {
        const rest = content.subarray(point).toString("latin1");
        if (/^[\s\0]*$/.test(rest)) {
          continue; // Padding: nothing is missing.
        }
        if (sample.cut === "shorter") {
          expect(content[point - 1], `at ${point}`).toBe(0x0a);
        } else if (sample.cut === "noted") {
          expect(cut.limits.join(), `at ${point}`).toMatch(/The file has no end/);
        } else {
          // A message of Protocol Buffers without its last fields.
          expect(sample.importer).toMatch(/pprof|TensorFlow trace/);
          expect(liveBytesOf(cut)).toBe(liveBytesOf(whole));
        }
        expect(cut.metrics.length).toBeLessThanOrEqual(whole.metrics.length);
      }
    }
  });

  test("cut off as it is packed", () => {
    const packed = readFileSync(join(data, sample.file));
    for (let part = 1; part < 20 && !packed.equals(content); part++) {
      const cut = outcome(packed.subarray(0, Math.floor((packed.length * part) / 20)));
      expect(cut).toMatchObject({ id: expect.stringMatching(/TM-E0(05|18)/) });
    }
  });

  test("its first bytes, then others", () => {
    for (let seed = 1; seed <= 16; seed++) {
      const random = numbers(seed);
      const kept = [8, 16, 64, 256][seed % 4] ?? 0;
      const noise = Buffer.from(
        Uint8Array.from({ length: 4000 }, () => present(random.next().value) >>> 24),
      );
      outcome(Buffer.concat([content.subarray(0, kept), noise]));
    }
  });

  test("with changed bytes", () => {
    for (let seed = 1; seed <= 30; seed++) {
      const random = numbers(seed);
      const changed = Buffer.from(content);
      for (let count = 0; count < 1 + (seed % 8); count++) {
        changed[present(random.next().value) % changed.length] =
          present(random.next().value) >>> 24;
      }
      outcome(changed);
    }
  });

  test("with bytes that are no UTF-8 in its names", () => {
    const marked = text.replaceAll(/imported|sampled|forward|scratch|Session|keep/g, (name) =>
      "\xff".repeat(name.length),
    );
    expect(ofText(marked)).not.toMatchObject({ id: "TM-E001" });
  });

  test.runIf(sample.figure)("with a figure that is negative, huge or no number", () => {
    const [match, number = ""] = present(sample.figure?.exec(text));
    for (const odd of ["-1", "1e400", "1e308", "-1e400", "NaN", "Infinity", "x", "null", ""]) {
      const changed = text.replaceAll(match, match.replace(number, odd));
      if (sample.possible?.includes(odd) !== true) {
        expect(ofText(changed), odd).toBeInstanceOf(TidemarkError);
      }
    }
  });

  test.runIf(sample.version)("of another version", () => {
    const [pattern, other] = present(sample.version);
    expect(ofText(text.replace(pattern, other))).toMatchObject({
      message: expect.stringMatching(/version is \d/),
    });
  });

  test.runIf(isText)("with odd values in the place of its numbers", () => {
    const places = [...text.matchAll(/-?\d+(?:\.\d+)?/g)];
    const step = Math.max(1, Math.floor(places.length / 30));
    for (let index = 0; index < places.length; index += step) {
      const { 0: number, index: at } = present(places[index]);
      for (const odd of ["-7", "1e400", "99999999999999999999", "0", '"x"', "null", "[]", "{}"]) {
        ofText(text.slice(0, at) + odd + text.slice(at + number.length));
      }
    }
  });

  test.runIf(/^\s*[[{]/.test(text))("with values of other types, and deeply nested ones", () => {
    const places = [...text.matchAll(/[:,[]\s*("[^"]*"|true|false|null|[[{])/g)];
    const step = Math.max(1, Math.floor(places.length / 30));
    for (let index = 0; index < places.length; index += step) {
      const { 0: match, 1: value = "", index: at } = present(places[index]);
      const from = at + match.length - value.length;
      const to = from + value.length;
      const odd = /[[{]/.test(value) ? [`${value}1,`, `[],${value}`] : ["7", "null", "[]", "{}"];
      for (const other of odd) {
        ofText(text.slice(0, from) + other + text.slice(to));
      }
    }
    const deep = `${"[".repeat(100_000)}${"]".repeat(100_000)}`;
    const numbersOf = [...text.matchAll(/(?<=[:,[]\s*)-?\d+(?:\.\d+)?/g)];
    for (const { 0: number, index: at } of numbersOf.slice(0, 8)) {
      ofText(text.slice(0, at) + deep + text.slice(at + number.length));
    }
  });
});

describe("content that would take long or much memory", () => {
  test.each([
    ["folded: many parentheses", `a${" (".repeat(200_000)}) 5\n`],
    ["folded: a frame of many parentheses", `a;${"(".repeat(60_000)} 5\n`],
    ["memory_profiler: a long number", `MEM ${"1".repeat(60_000)}\n`],
    [
      "massif: many parentheses",
      `desc: x\ncmd: x\ntime_unit: i\nsnapshot=0\nheap_tree=peak\nn0: 5 0x1: ${" (in ".repeat(100_000)})\n`,
    ],
    [
      "massif: a deep tree",
      `desc: x\ncmd: x\ntime_unit: i\nsnapshot=0\nheap_tree=peak\n${Array.from({ length: 9000 }, (_, depth) => `${" ".repeat(depth)}n1: 5 0x1: f (a.c:1)`).join("\n")}\n`,
    ],
    [
      "objgraph: many references to one object",
      `digraph ObjectGraph {\n  o1[label="x"];\n${'  o2 -> o1 [label="y"];\n'.repeat(200_000)}}\n`,
    ],
    ["DHAT: many empty objects", `{"dhatFileVersion":2,"x":[${"{},".repeat(9_000_000)}{}]}`],
    [
      "speedscope: deeply nested",
      `{"$schema":"https://www.speedscope.app/file-format-schema.json","profiles":${"[".repeat(3_000_000)}`,
    ],
    [
      "pprof: many empty samples",
      Buffer.concat([
        Buffer.from([0x0a, 0x02, 0x08, 0x01]),
        Buffer.alloc(20 << 20, Buffer.from([0x12, 0x00])),
      ]),
    ],
    [
      "TensorFlow: many empty planes",
      Buffer.concat([
        gunzipSync(readFileSync(join(data, "tensorflow.xplane.pb.gz"))),
        Buffer.alloc(20 << 20, Buffer.from([0x0a, 0x00])),
      ]),
    ],
    [
      "tracemalloc: many dicts",
      Buffer.concat([Buffer.from([0x80, 4]), Buffer.alloc(20 << 20, 0x7d)]),
    ],
    [
      "tracemalloc: many marks",
      Buffer.concat([Buffer.from([0x80, 4]), Buffer.alloc(20 << 20, 0x28)]),
    ],
  ])("%s", (_name, content) => {
    const outcome = outcomeOf(typeof content === "string" ? Buffer.from(content) : content);
    expect(outcome instanceof TidemarkError ? outcome.id : "imported").toMatch(
      /TM-E0(05|08|14|18|19)|imported/,
    );
  });

  test("an archive in an archive in an archive", () => {
    let content = readFileSync(join(data, "massif.out"));
    for (let layer = 0; layer < 5; layer++) {
      content = gzipSync(content);
    }
    expect(outcomeOf(content)).toMatchObject({
      message: expect.stringMatching(/more than 4 times/),
    });
    expect(outcomeOf(gunzipSync(content))).not.toBeInstanceOf(TidemarkError);
  });

  test.each([
    ["xz", "fd377a585a0000", "xz -dk"],
    ["bzip2", "425a6839", "bzip2 -dk"],
    ["unzip", "504b030414", "unzip"],
  ])("compressed by %s: the message has the command that unpacks it", (_tool, head, command) => {
    expect(outcomeOf(Buffer.from(head, "hex"))).toMatchObject({
      id: "TM-E018",
      message: expect.stringContaining(`unpack it first: ${command} /`),
    });
  });

  test("memray: many stacks in a file of totals", () => {
    const plain = readForeignFile(join(data, "memray-aggregated.bin")).bytes;
    // Records of a stack: kind 3, frame 0, parent 0.
    const stacks = Buffer.alloc(60 << 20, Buffer.from([3, 0, 0]));
    const trailer = plain.lastIndexOf(15);
    const changed = Buffer.concat([plain.subarray(0, trailer), stacks]);
    expect(outcomeOf(changed)).toMatchObject({ id: "TM-E008" });
  });
});
