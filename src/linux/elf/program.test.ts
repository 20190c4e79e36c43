/** Classifies programs of every kind, created here, by whether a library can be preloaded. */
import {
  chmodSync,
  chownSync,
  copyFileSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { inspectProgram } from "./program.js";

let folder: string;
let genuine: Buffer;

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "tidemark-program-"));
  genuine = readFileSync("/bin/sh"); // dynamic and linked to glibc on every machine that runs these tests
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

function file(name: string, content: string | Buffer, mode = 0o755): string {
  const path = join(folder, name);
  writeFileSync(path, content);
  chmodSync(path, mode);
  return path;
}

function kindOf(...command: string[]) {
  return inspectProgram(command, { path: `${folder}:/usr/bin:/bin`, cwd: folder }).kind;
}

/** A program with another loader path of the same length or less. */
function withLoader(name: string, loader: string): string {
  const bytes = Buffer.from(genuine);
  const at = bytes.indexOf("/lib64/ld-linux-x86-64.so.2\0");
  bytes.fill(0, at, at + 27);
  bytes.write(loader, at, "latin1");
  return file(name, bytes);
}

function changed(name: string, change: (bytes: Buffer) => void): string {
  const bytes = Buffer.from(genuine);
  change(bytes);
  return file(name, bytes);
}

describe("ELF files", () => {
  test("of glibc", () => {
    expect(kindOf("/bin/sh")).toBe("glibc");
    expect(kindOf(process.execPath)).toBe("glibc");
  });

  test("of musl, of another loader", () => {
    expect(kindOf(withLoader("musl", "/lib/ld-musl-x86_64.so.1"))).toBe("musl");
    expect(kindOf(withLoader("foreign", "/system/bin/linker64"))).toBe("foreign-loader");
  });

  test("the loader, started under its own name: the program that it loads is reached", () => {
    expect(kindOf("/lib64/ld-linux-x86-64.so.2")).toBe("glibc");
  });

  test("static: no loader at all", () => {
    const path = changed("static", (bytes) => {
      const table = Number(bytes.readBigUInt64LE(32));
      for (let at = table; at < table + 56 * bytes.readUInt16LE(56); at += 56) {
        if (bytes.readUInt32LE(at) === 3) {
          bytes.writeUInt32LE(0, at);
        }
      }
    });
    expect(kindOf(path)).toBe("static");
  });

  test("32-bit programs, and programs for another machine", () => {
    expect(kindOf(changed("small", (bytes) => bytes.writeUInt8(1, 4)))).toBe("32-bit");
    expect(kindOf(changed("arm", (bytes) => bytes.writeUInt16LE(183, 18)))).toBe("other-machine");
  });

  test("set-user-id to another user", () => {
    const path = join(folder, "secure");
    copyFileSync("/bin/sh", path);
    chmodSync(path, 0o4755);
    expect(kindOf(path)).toBe("glibc");
    if (process.getuid?.() === 0) {
      chownSync(path, 1234, 0);
      chmodSync(path, 0o4755);
      expect(kindOf(path)).toBe("setuid");
      chownSync(path, 0, 1234);
      chmodSync(path, 0o2755);
      expect(kindOf(path)).toBe("setuid");
    }
  });

  test("truncated at every byte of its headers: an answer, never an exception", () => {
    for (let length = 0; length < 1000; length += 7) {
      expect(typeof kindOf(file("cut", genuine.subarray(0, length)))).toBe("string");
    }
  });

  test("headers that point anywhere", () => {
    for (const offset of [0n, 1n << 40n, (1n << 63n) + 5n, 0xffffffffffffffffn]) {
      expect(typeof kindOf(changed("wild", (bytes) => bytes.writeBigUInt64LE(offset, 32)))).toBe(
        "string",
      );
    }
  });
});

describe("scripts", () => {
  test("are replaced by their interpreter, through any chain", () => {
    const first = file("first", "#!/bin/sh\n");
    expect(kindOf(file("second", `#! ${first} -x\n`))).toBe("glibc");
    expect(kindOf(file("static-script", `#!${join(folder, "static")}\n`))).toBe("static");
    expect(inspectProgram([join(folder, "second")]).chain).toEqual([
      join(folder, "second"),
      first,
      "/bin/sh",
    ]);
  });

  test("through env, with its options", () => {
    const target = join(folder, "musl");
    expect(kindOf(file("env-plain", "#!/usr/bin/env musl\n"))).toBe("musl");
    expect(kindOf(file("env-split", `#!/usr/bin/env -S A=1 ${target} -x\n`))).toBe("musl");
    expect(kindOf("env", "-i", "-u", "HOME", "B=2", target)).toBe("musl");
    expect(kindOf("env", "PATH=/nowhere", "musl")).toBe("missing");
    expect(kindOf("env")).toBe("glibc");
  });

  test("that run themselves are stopped at a limit", () => {
    const path = join(folder, "ring");
    file("ring", `#!${path}\n`);
    expect(typeof kindOf(path)).toBe("string");
  });

  test("without an interpreter line, or with one that is missing", () => {
    expect(kindOf(file("bare", "echo hello\n"))).toBe("unknown");
    expect(kindOf(file("hash", "#!\n"))).toBe("unknown");
    expect(kindOf(file("lost", "#!/nowhere/python\n"))).toBe("missing");
    expect(kindOf(file("empty", ""))).toBe("unknown");
  });
});

describe("looking up", () => {
  test("along PATH, skipping files that are not executable", () => {
    const early = join(folder, "early");
    mkdirSync(early);
    writeFileSync(join(early, "tool"), "#!/bin/sh\n", { mode: 0o644 });
    const late = file("tool", "#!/bin/sh\n");
    const answer = inspectProgram(["tool"], { path: `${early}:${folder}`, cwd: "/" });
    expect(answer.chain[0]).toBe(late);
    expect(inspectProgram(["tool"], { path: early, cwd: "/" }).kind).toBe("not-executable");
  });

  test("an empty entry of PATH is the current directory; a slash ends the search", () => {
    file("here", "#!/bin/sh\n");
    expect(inspectProgram(["here"], { path: ":/bin", cwd: folder }).kind).toBe("glibc");
    expect(inspectProgram(["./here"], { path: "", cwd: folder }).kind).toBe("glibc");
    expect(inspectProgram(["here"], { path: "/bin", cwd: folder }).kind).toBe("missing");
  });

  test("missing, a directory, nothing, a link to nowhere", () => {
    symlinkSync("/nowhere", join(folder, "dangling"));
    expect(kindOf("no-such-program")).toBe("missing");
    expect(kindOf(folder)).toBe("not-executable");
    expect(kindOf("")).toBe("missing");
    expect(inspectProgram([]).kind).toBe("missing");
    expect(kindOf(join(folder, "dangling"))).toBe("missing");
  });
});
