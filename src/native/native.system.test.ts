import { execFileSync, spawn } from "node:child_process";
import {
  copyFileSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { present } from "../model/base/present.js";
import { demangle } from "./demangle.js";
import { ElfSymbols } from "./elf_symbols.js";
import { Symboliser } from "./symboliser.js";

const SOURCE = `
#include <stdio.h>
__attribute__((noinline)) static int hidden_step(int x) { return x * 3 + getchar(); }
__attribute__((noinline)) int loads_of_work(int x) { return hidden_step(x) + 1; }
int add(int a, int b) __asm__("_ZN4math3addEii");
int add(int a, int b) { return a + b; }
int main(void) { puts("ready"); fflush(stdout); getchar(); return loads_of_work(1) > 1000; }
`;

let directory: string;
let program: string;
let stripped: string;
beforeAll(() => {
  directory = mkdtempSync(join(tmpdir(), "tidemark-native-"));
  program = join(directory, "program");
  stripped = join(directory, "stripped.so");
  writeFileSync(join(directory, "program.c"), SOURCE);
  const cc = process.env.CC ?? "cc";
  execFileSync(cc, ["-O1", "-fPIC", "-o", program, join(directory, "program.c")]);
  execFileSync(cc, ["-O1", "-fPIC", "-shared", "-s", "-o", stripped, join(directory, "program.c")]);
});
afterAll(() => rmSync(directory, { recursive: true }));

/** Addresses as nm(1) prints them. */
function addressesOf(path: string, ...options: string[]): Map<string, number> {
  const lines = execFileSync("nm", [...options, path], { encoding: "utf8" }).split("\n");
  return new Map(
    lines
      .map((line) => line.split(" "))
      .filter(([, type]) => type !== undefined && "tTwW".includes(type))
      .map(([address, , name]) => [present(name), Number.parseInt(present(address), 16)]),
  );
}

describe("ElfSymbols", () => {
  it("finds the function that contains an address, even a static one", () => {
    const addresses = addressesOf(program);
    const symbols = present(ElfSymbols.open(program));
    const wanted = ["main", "hidden_step", "loads_of_work", "_ZN4math3addEii"];
    expect(symbols.names(wanted.map((name) => present(addresses.get(name)) + 1))).toEqual(wanted);
    expect(symbols.names([0, 1, 2 ** 40])).toEqual(["", "", ""]);
  });

  it("uses the dynamic symbols of a stripped object", () => {
    const addresses = addressesOf(stripped, "-D");
    const symbols = present(ElfSymbols.open(stripped));
    expect(symbols.names([present(addresses.get("loads_of_work"))])).toEqual(["loads_of_work"]);
  });

  it("is null for non-objects, and survives any damage", () => {
    const path = join(directory, "damaged");
    expect(ElfSymbols.open(join(directory, "missing"))).toBeNull();
    expect(ElfSymbols.open(directory)).toBeNull();
    expect(ElfSymbols.open("/dev/zero")).toBeNull();
    writeFileSync(path, "not an object");
    expect(ElfSymbols.open(path)).toBeNull();
    const bytes = readFileSync(program);
    const main = present(addressesOf(program).get("main"));
    const sectionHeaders = Number(bytes.readBigUInt64LE(40));
    for (let at = 0; at < bytes.length; at += at < 64 || at >= sectionHeaders ? 1 : 997) {
      const damaged = Buffer.from(bytes);
      damaged[at] = 0xff;
      writeFileSync(path, damaged);
      ElfSymbols.open(path)?.names([main]);
    }
    for (let length = 0; length < bytes.length; length += 499) {
      writeFileSync(path, bytes.subarray(0, length));
      expect(ElfSymbols.open(path)).toBeNull();
    }
  });
});

describe("demangle", () => {
  it.each([
    ["_ZN2at6native3addERKNS_6TensorES3_", "at::native::add(at::Tensor const&, at::Tensor const&)"],
    ["_RNvCskwGfYPst2Cb_3foo16example_function", "foo::example_function"],
    ["_ZN4core3fmt5Write9write_fmt17h0123456789abcdefE", "core::fmt::Write::write_fmt"],
    ["PyObject_Malloc", "PyObject_Malloc"],
    ["_Zgarbage", "_Zgarbage"],
    ["_Z", "_Z"],
    ["", ""],
  ])("%s", (mangled, name) => {
    expect(demangle(mangled)).toBe(name);
  });
});

describe("Symboliser", () => {
  it("names functions by the file that the process runs, and by no other", async () => {
    const main = present(addressesOf(program).get("main"));
    const add = present(addressesOf(program).get("_ZN4math3addEii"));
    const startedMs = Date.now();
    const child = spawn(program, { stdio: ["pipe", "pipe", "inherit"] });
    try {
      await new Promise((resolve) => child.stdout.once("data", resolve));
      const names = (addresses: number[]) =>
        new Symboliser().names(present(child.pid), startedMs, program, addresses);
      expect(names([main, add, 1])).toEqual(["main", "math::add(int, int)", ""]);

      const other = join(directory, "other");
      copyFileSync(stripped, other);
      renameSync(other, program);
      expect(names([main])).toEqual([""]);
    } finally {
      child.stdin.end();
      await new Promise((resolve) => child.once("exit", resolve));
    }
    const symboliser = new Symboliser();
    const exported = present(addressesOf(program, "-D").get("loads_of_work"));
    // The process has ended: the file must be older than the process.
    expect(symboliser.names(present(child.pid), startedMs, program, [exported])).toEqual([""]);
    expect(symboliser.names(present(child.pid), Date.now() + 1000, program, [exported])).toEqual([
      "loads_of_work",
    ]);
    expect(symboliser.names(present(child.pid), Date.now() + 1000, "linux-vdso.so.1", [1])).toEqual(
      [""],
    );
  });
});
