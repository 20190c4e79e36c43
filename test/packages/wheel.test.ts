/** The packages as files: what other tools report about them, and that their bytes depend only on the sources. */
import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { cpSync, readFileSync, statSync, symlinkSync } from "node:fs";
import { basename, join } from "node:path";
import { afterAll, beforeAll, describe, expect, inject, test } from "vitest";
import { newerSymbols } from "../../scripts/package/native.mjs";
import { environment } from "../environment.js";
import { execute, removeScratch, repository, scratch } from "../run.js";
import { Machine, noMachineBecause } from "./machine.js";
import { buildPackages, type PackageFiles } from "./packages.js";

let packages: PackageFiles;
beforeAll(async () => {
  packages = await buildPackages();
});
afterAll(removeScratch);

describe.skipIf(environment.packagingPython === null)("other tools", () => {
  const python = environment.packagingPython as string;
  const tool = (...words: string[]) =>
    execute([python, "-m", ...words], {
      env: { PATH: `${join(python, "..")}:${process.env.PATH}` },
    });

  test("auditwheel: the native parts fit the tag", async () => {
    for (const wheel of [packages.wheel, packages.serverWheel]) {
      const { status, stdout, stderr } = await tool("auditwheel", "show", wheel);
      expect(status, stderr).toBe(0);
      const [, minor] = /tag:\s+"manylinux_2_(\d+)_x86_64"/.exec(stdout) ?? [];
      expect(Number(minor), stdout).toBeLessThanOrEqual(28);
    }
  });

  test("twine: the descriptions can be shown", async () => {
    const { status, stdout } = await tool(
      "twine",
      "check",
      "--strict",
      packages.wheel,
      packages.serverWheel,
    );
    expect(status, stdout).toBe(0);
  });

  test("wheel: every file has the hash of RECORD", async () => {
    const folder = scratch();
    for (const wheel of [packages.wheel, packages.serverWheel]) {
      const { status, stderr } = await tool("wheel", "unpack", "--dest", folder, wheel);
      expect(status, stderr).toBe(0);
    }
  });
});

test("the wheel is small and holds no sources, tests and source maps", async () => {
  expect(statSync(packages.wheel).size).toBeLessThan(15e6);
  const listed = execFileSync("python3", ["-m", "zipfile", "-l", packages.wheel], {
    encoding: "utf8",
  });
  expect(listed).toContain("tidemark_profiler/dist/program/main.js");
  expect(listed).not.toMatch(/\.ts |\.map |\.c |\/tests?\//);
});

describe.skipIf(inject("counts").packageFolders === 0)("built again", () => {
  test("the same recording in another folder gives the same bytes", async () => {
    const hashes = hashesOf(Object.values(packages));
    for (const name of ["another folder", "Büro"].slice(0, inject("counts").packageFolders)) {
      const folder = join(scratch(), name);
      copySources(folder);
      const outcome = await execute(["node", "scripts/package.mjs"], { cwd: folder });
      expect(outcome.status, outcome.stdout + outcome.stderr).toBe(0);
      expect(hashesOf(outcome.stdout.trim().split("\n").slice(-4))).toEqual(hashes);
    }
  }, 1_200_000);

  test.each(["bullseye", "trixie"])(
    "the agent needs no more of glibc: compiled in Debian %s",
    async (suite) => {
      expect(noMachineBecause()).toBeNull();
      const machine = await Machine.start(environment.buildRoots[suite] as string);
      try {
        const files = execFileSync("git", ["ls-files", "agent"], {
          cwd: repository,
          encoding: "utf8",
        });
        for (const file of files.trim().split("\n")) {
          machine.write(`/src/${file}`, readFileSync(join(repository, file), "utf8"));
        }
        await machine.must(["make", "-s", "-C", "/src/agent", "all"]);
        for (const name of [
          "libtidemark.so",
          "libtidemark-keyed.so",
          "libtidemark-calls.so",
          "tidemark-guard",
        ]) {
          const table = await machine.must([
            "readelf",
            "--wide",
            "--dyn-syms",
            `/src/agent/build/${name}`,
          ]);
          expect(table).toMatch(/ UND \S+@GLIBC_2/);
          expect(newerSymbols(table), name).toEqual([]);
        }
      } finally {
        machine.stop();
      }
    },
  );
});

/** Copies the files that git knows, in their current state, and the libraries. */
function copySources(folder: string): void {
  const listed = execFileSync("git", ["ls-files", "-z"], { cwd: repository, encoding: "utf8" });
  for (const file of listed.split("\0").filter((name) => name !== "")) {
    cpSync(join(repository, file), join(folder, file));
  }
  symlinkSync(join(repository, "node_modules"), join(folder, "node_modules"));
}

function hashesOf(paths: readonly string[]): Record<string, string> {
  return Object.fromEntries(
    paths.map((path) => [
      basename(path),
      createHash("sha256").update(readFileSync(path)).digest("hex"),
    ]),
  );
}
