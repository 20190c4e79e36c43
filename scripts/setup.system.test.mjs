import { execFileSync, spawnSync } from "node:child_process";
import {
  chmodSync,
  cpSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { root } from "./setup.mjs";

/** @type {string} */
let folder;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "tidemark-setup-"));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

/**
 * Runs the set-up of `clone` with only these programs on PATH.
 * @param {Record<string, string>} programs name -> text of a shell script, or path of a program
 * @param {string} [clone]
 */
function setUpWith(programs, clone = root) {
  const bin = join(folder, "bin");
  mkdirSync(bin);
  for (const [name, content] of Object.entries(programs)) {
    if (content.startsWith("/")) {
      symlinkSync(content, join(bin, name));
    } else {
      writeFileSync(join(bin, name), `#!/bin/sh\n${content}\n`);
    }
    if (!content.startsWith("/")) {
      chmodSync(join(bin, name), 0o755);
    }
  }
  const env = { PATH: bin, HOME: folder };
  const { status, stdout, stderr } = spawnSync(
    process.execPath,
    [join(clone, "scripts/setup.mjs")],
    {
      env,
      encoding: "utf8",
    },
  );
  return { status, stdout, stderr };
}

const python = "echo 3.11";

test("prints nothing and does nothing when nothing is missing", () => {
  expect(setUpWith({ python3: python, cc: "exit 0" })).toEqual({
    status: 0,
    stdout: "",
    stderr: "",
  });
});

test("one line where there is no Python", () => {
  const { status, stderr } = setUpWith({ cc: "exit 0" });
  expect(status).toBe(1);
  expect(stderr).toMatch(/^python3 does not run here: .*\n$/);
});

test("one line where Python is too old", () => {
  const { status, stderr } = setUpWith({ python3: "echo 3.8", cc: "exit 0" });
  expect(status).toBe(1);
  expect(stderr).toMatch(/^python3 is 3\.8: .*\n$/);
});

test("one line where there is no C compiler", () => {
  const { status, stderr } = setUpWith({ python3: python });
  expect(status).toBe(1);
  expect(stderr).toMatch(/^no C compiler \(looked for cc, gcc, clang on PATH\).*\n$/);
});

/** A clone with one package in its lock file; `installed` is what npm left of it. */
function cloneWithOnePackage({ integrity = "sha512-a", optional = false } = {}) {
  const clone = join(folder, "clone");
  cpSync(join(root, "scripts"), join(clone, "scripts"), { recursive: true });
  const packages = { "": {}, "node_modules/one": { version: "1.0.0", integrity, optional } };
  writeFileSync(join(clone, "package-lock.json"), JSON.stringify({ packages }));
  return clone;
}

/** @param {string} clone @param {string} integrity */
function install(clone, integrity) {
  mkdirSync(join(clone, "node_modules/one"), { recursive: true });
  writeFileSync(join(clone, "node_modules/one/package.json"), "{}");
  const packages = { "node_modules/one": { version: "1.0.0", integrity } };
  writeFileSync(join(clone, "node_modules/.package-lock.json"), JSON.stringify({ packages }));
}

const machine = { python3: python, cc: "exit 0", npm: 'echo "npm $*" >> "$HOME/npm-was-asked"' };
const asked = () => readFileSync(join(folder, "npm-was-asked"), "utf8");

test("installs the packages of a fresh clone, from the lock file", () => {
  const { status, stdout } = setUpWith(machine, cloneWithOnePackage());
  expect(status).toBe(0);
  expect(stdout).toMatch(/^npm ci: .*\n$/);
  expect(asked()).toMatch(/^npm ci /);
});

test("installs again when the lock file names another package of the same version", () => {
  const clone = cloneWithOnePackage({ integrity: "sha512-b" });
  install(clone, "sha512-a");
  setUpWith(machine, clone);
  expect(asked()).toMatch(/^npm ci /);
});

test("installs again when a package's folder is gone", () => {
  const clone = cloneWithOnePackage();
  install(clone, "sha512-a");
  rmSync(join(clone, "node_modules/one"), { recursive: true });
  setUpWith(machine, clone);
  expect(asked()).toMatch(/^npm ci /);
});

test("leaves packages that match the lock file, and packages for other platforms", () => {
  const clone = cloneWithOnePackage({ optional: true });
  mkdirSync(join(clone, "node_modules"));
  writeFileSync(join(clone, "node_modules/.package-lock.json"), '{"packages": {}}');
  setUpWith(machine, clone);
  expect(asked).toThrow();
});

test("shows npm's output when it fails", () => {
  const npm = "echo no such registry >&2; exit 1";
  const { status, stderr } = setUpWith({ ...machine, npm }, cloneWithOnePackage());
  expect(status).toBe(1);
  expect(stderr).toContain("no such registry");
});

test("the scripts depend on nothing but Node until the packages are installed", () => {
  const names = "setup build check test demo dev generate environment docs claims";
  const clone = join(folder, "clone");
  cpSync(join(root, "scripts"), join(clone, "scripts"), { recursive: true });
  for (const script of names.split(" ")) {
    const importing = `await import(${JSON.stringify(join(clone, `scripts/${script}.mjs`))})`;
    execFileSync(process.execPath, ["--input-type=module", "-e", importing]);
  }
});
