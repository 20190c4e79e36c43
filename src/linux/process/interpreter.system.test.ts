import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, readdirSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";
import { expect, it } from "vitest";
import { environment } from "../../../test/environment.js";
import { itemAt } from "../../model/base/columns.js";
import { present } from "../../model/base/present.js";
import { findLibrary, findVersion, readInterpreter } from "./interpreter.js";
import { readAttachPermission } from "./permission.js";

/** Every python3 on the PATH, in pyenv and in /usr/bin. */
function interpreters(): string[] {
  const pyenv = join(process.env.PYENV_ROOT ?? join(homedir(), ".pyenv"), "versions");
  const installed = existsSync(pyenv)
    ? readdirSync(pyenv).map((name) => join(pyenv, name, "bin/python3"))
    : [];
  const onPath = (process.env.PATH ?? "").split(":").map((folder) => join(folder, "python3"));
  return [...new Set([...onPath, "/usr/bin/python3", ...installed])].filter(existsSync);
}

async function withPython<Value>(python: string, inspect: (pid: number) => Value): Promise<Value> {
  const child: ChildProcess = spawn(
    python,
    ["-c", "import sys; print('up', flush=True); sys.stdin.read()"],
    { stdio: ["pipe", "pipe", "inherit"] },
  );
  try {
    await once(child.stdout as NodeJS.ReadableStream, "data");
    return inspect(present(child.pid));
  } finally {
    child.kill("SIGKILL");
    await once(child, "exit");
  }
}

it.each(interpreters())("reports the same full version as %s itself", async (python) => {
  // Launchers, such as pyenv's shims, are scripts that exec the interpreter; the program that finally runs
  // counts.
  const version = execFileSync(
    python,
    ["-c", "import platform; print(platform.python_version())"],
    {
      encoding: "utf8",
    },
  ).trim();
  const shared = execFileSync(
    python,
    ["-c", "import sysconfig; print(sysconfig.get_config_var('Py_ENABLE_SHARED'))"],
    { encoding: "utf8" },
  ).trim();
  const seen = await withPython(python, readInterpreter);
  expect(seen).toMatchObject({ version, debug: false, freeThreaded: false });
  // Debian's Python is built shared, but its executable is linked statically.
  expect(["shared", "static"]).toContain(seen?.linking);
  expect(seen?.linking === "static" || shared === "1").toBe(true);
});

const freeThreaded = environment.interpreters.filter((one) => one.freeThreaded);
it.each(freeThreaded)("reports that $path has no GIL, whatever its name", async ({ path }) => {
  expect(await withPython(path, readInterpreter)).toMatchObject({ freeThreaded: true });
});
if (freeThreaded.length === 0) {
  it.skip("free-threaded builds: none here", () => {});
}

it("does not mistake another process for Python", () => {
  expect(readInterpreter(process.pid)).toBeNull();
  expect(readInterpreter(2 ** 22 + 1)).toBeNull();
});

it("finds a library with spaces in its path, deleted or not", () => {
  const line = "7f00-7f01 r-xp 00000000 08:01 42                 /opt/my app/libpython3.12.so.1.0";
  expect(findLibrary(`7e00-7e01 rw-p 00000000 00:00 0 \n${line}\n`)).toBe(
    "/opt/my app/libpython3.12.so.1.0",
  );
  expect(findLibrary(`${line} (deleted)`)).toBe("/opt/my app/libpython3.12.so.1.0");
  expect(findLibrary("7f00-7f01 r-xp 00000000 08:01 42 /opt/libpython3-notes.txt")).toBeNull();
});

it("does not mistake a longer text for a version", () => {
  const file = Buffer.from("x/3.11.0\0libpython 3.11.9\0 13.11.2\0 \x003.11.7\0", "latin1");
  expect(findVersion(file, "3.12")).toBeNull();
  expect(findVersion(Buffer.from("\x003.14.0rc2+\0"), "3.14")).toBe("3.14.0rc2+");
  expect(findVersion(Buffer.from("\x003.14.0.tgz\0"), "3.14")).toBeNull();
});

it("may read its own processes, and reports that another one has ended", async () => {
  const python = itemAt(interpreters(), 0);
  const own = await withPython(python, readAttachPermission);
  // Yama may forbid even this; then a reason and a remedy are expected.
  expect(own.ok || (own.reason !== "" && own.remedy !== "")).toBe(true);
  expect(readAttachPermission(2 ** 22 + 1)).toMatchObject({ ok: false, reason: /ended/ });
});
