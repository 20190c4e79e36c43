import { execFileSync, spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { gunzipSync } from "node:zlib";
import { Profile as PprofProfile } from "pprof-format";
import { describe, expect, it } from "vitest";
import { itemAt } from "../../model/base/columns.js";
import { present } from "../../model/base/present.js";
import { profileOf } from "../../model/profile/profile.fixture.js";
import { pprof } from "./pprof.js";

const profile = profileOf(`
  main;load@/srv/app.py:7 1000 objects=4 allocated=9000
  main;load@/srv/app.py:7;/usr/lib/libx.so+1f0 500 domain=native thread=loader label=endpoint:/x
  main;gone 0 allocated=0 objects=0
  a\u00e4\u{1f642} 7 label=process:mine
`);

describe("pprof", () => {
  const decoded = PprofProfile.decode(gunzipSync(pprof.encode(profile)));
  const text = (id: number | bigint) => decoded.stringTable.strings[Number(id)];
  const nameOf = (location: number | bigint) => {
    const { line } = itemAt(decoded.location, Number(location) - 1);
    return text(itemAt(decoded.function, Number(itemAt(line, 0).functionId) - 1).name);
  };

  it("holds the four sample types, live bytes first to show", () => {
    expect(decoded.sampleType.map(({ type, unit }) => `${text(type)}/${text(unit)}`)).toEqual([
      "alloc_objects/count",
      "alloc_space/bytes",
      "inuse_objects/count",
      "inuse_space/bytes",
    ]);
    expect(text(decoded.defaultSampleType)).toBe("inuse_space");
    expect(Number(decoded.period)).toBe(65536);
    expect(BigInt(decoded.timeNanos)).toBe(1_700_000_000_000_000_000n);
  });

  it("holds each site with its stack, leaf first", () => {
    expect(decoded.sample.map(({ value }) => value.map(Number))).toEqual([
      [4, 9000, 4, 1000],
      [1, 500, 1, 500],
      [1, 7, 1, 7],
    ]);
    expect(decoded.sample.map(({ locationId }) => locationId.map(nameOf))).toEqual([
      ["load", "main"],
      ["libx.so+0x1f0", "load", "main"],
      ["a\u00e4\u{1f642}"],
    ]);
  });

  it("maps native frames to their object, at their address within it", () => {
    const native = present(decoded.location.find(({ mappingId }) => Number(mappingId) !== 0));
    const mapping = itemAt(decoded.mapping, Number(native.mappingId) - 1);
    expect(text(mapping.filename)).toBe("/usr/lib/libx.so");
    expect(Number(native.address) - Number(mapping.memoryStart)).toBe(0x1f0);
  });

  it("labels samples with process, thread, domain and labels", () => {
    const labels = decoded.sample.map(({ label }) =>
      Object.fromEntries(label.map(({ key, str }) => [text(key), text(str)])),
    );
    expect(labels[1]).toEqual({
      process: "42 python app.py",
      thread: "loader",
      domain: "native",
      endpoint: "/x",
    });
    expect(itemAt(labels, 2).process).toBe("mine");
  });

  const go = spawnSync("go", ["version"]).status === 0;
  it.skipIf(!go)(
    "is read by go tool pprof",
    () => {
      const directory = mkdtempSync(join(tmpdir(), "tidemark-pprof-"));
      try {
        const path = join(directory, "heap.pb.gz");
        writeFileSync(path, pprof.encode(profile));
        const report = (type: string) =>
          execFileSync("go", ["tool", "pprof", "-top", `-sample_index=${type}`, path], {
            encoding: "utf8",
            env: { ...process.env, PPROF_TMPDIR: directory },
            stdio: ["ignore", "pipe", "pipe"],
          });
        expect(report("inuse_space")).toMatch(/1507B total/);
        expect(report("inuse_space")).toMatch(/1000B 66\.36% +\S+ +1500B 99\.54% +load/);
        expect(report("alloc_space")).toMatch(/9000B .*load/);
      } finally {
        rmSync(directory, { recursive: true });
      }
      // The first use of `go tool pprof` after an installation compiles it.
    },
    300_000,
  );
});
