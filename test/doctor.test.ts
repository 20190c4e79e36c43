/** `tidemark doctor` on this machine, without privileges, next to other software of its name, and for one process. */
import { chmodSync, existsSync, mkdirSync, readdirSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { DoctorJson } from "../src/model/documents/doctor_document.js";
import { anyInterpreter, environment, isRoot } from "./environment.js";
import { errorLine, validate } from "./recorded_app.js";
import { execute, type RunSettings, removeScratch, scratch, tidemark, until } from "./run.js";

const python = anyInterpreter().path;
/** A PATH whose programs another user may also run. */
const SYSTEM_PATH = "/usr/bin:/bin";
const hasSystemPython = existsSync("/usr/bin/python3");
let folder: string;
/** PATH with the tests' Python as python3, and what the launcher needs. */
let bin: string;

beforeAll(async () => {
  folder = scratch();
  bin = scratch();
  symlinkSync(python, join(bin, "python3"));
  for (const tool of ["node", "sh", "tr", "readlink"]) {
    const { stdout } = await execute(["sh", "-c", `command -v ${tool}`]);
    symlinkSync(stdout.trim(), join(bin, tool));
  }
});
afterAll(removeScratch);

async function doctor(
  words: readonly string[],
  { path = bin, ...settings }: RunSettings & { path?: string } = {},
): Promise<{ document: DoctorJson; status: number | null; check: (name: string) => Check }> {
  const { status, stdout, stderr } = await execute([tidemark, "doctor", "--json", ...words], {
    cwd: folder,
    ...settings,
    env: { PATH: path, HOME: folder, ...settings.env },
  });
  expect(stderr).toBe("");
  const document = validate(stdout, "doctor") as unknown as DoctorJson;
  const check = (name: string) => {
    const found = document.checks.find((each) => each.check === name);
    expect(
      found,
      `${name} of ${document.checks.map((each) => each.check).join(", ")}`,
    ).toBeDefined();
    return found as Check;
  };
  return { document, status, check };
}
type Check = DoctorJson["checks"][number];

describe("on a machine", () => {
  test("on which everything works: a program was recorded, another was read", async () => {
    const { document, status, check } = await doctor([]);
    expect([status, document.ready]).toEqual([0, true]);
    expect(check("recording")).toMatchObject({ state: "ok" });
    expect(check("recording").found).toMatch(/^Python [\d.]+ was recorded, \d+ samples$/);
    expect(check("this user's processes").found).toMatch(/read, paused for /);
    expect(check("C library").found).toMatch(/^glibc 2\.\d+$/);
    expect(check(join(bin, "python3"))).toMatchObject({ state: "ok", area: "python" });
    expect(check("command").found).toContain("not on PATH");
    expect(document.checks.every(({ state, effect }) => (state === "ok") === (effect === ""))).toBe(
      true,
    );
  });

  test("as text: a line per check, and the conclusion; with --quiet only failed checks", async () => {
    const settings = { cwd: folder, env: { PATH: bin, HOME: folder } };
    const { status, stdout } = await execute([tidemark, "doctor"], settings);
    expect(status).toBe(0);
    expect(stdout).toMatch(
      /^permissions\n {2}ok +this user's processes +another process was read/m,
    );
    expect(stdout).toMatch(/^Everything needed works: \d+ ok, \d+ limited, 0 missing\.$/m);
    const quiet = await execute([tidemark, "doctor", "--quiet"], settings);
    expect(quiet.stdout).not.toMatch(/^ {2}ok /m);
  });

  test.skipIf(!isRoot || !hasSystemPython || environment.tools.setpriv === null)(
    "without a capability: other users' processes are not readable, with the remedy",
    async () => {
      const unprivileged =
        "--reuid=65534 --regid=65534 --clear-groups --bounding-set=-all --inh-caps=-all";
      const before = [environment.tools.setpriv as string, ...unprivileged.split(" ")];
      const { status, check } = await doctor([], { before, path: SYSTEM_PATH });
      expect(status).toBe(0);
      expect(check("other users")).toMatchObject({
        state: "limited",
        found: "user 65534 without CAP_SYS_PTRACE",
      });
      expect(check("other users").remedy).toMatch(/sudo|SYS_PTRACE/);
      expect(check("recording").state).toBe("ok");
    },
  );

  test.skipIf(
    !isRoot ||
      !hasSystemPython ||
      environment.tools.unshare === null ||
      environment.tools.setpriv === null,
  )(
    "whose kernel restricts ptrace: the setting is named, and the command that lifts it",
    async () => {
      // If this kernel has no Yama, its file is mounted over /proc in the test's own mount namespace.
      const words = `mount -t tmpfs none /proc/sys/kernel && mkdir /proc/sys/kernel/yama &&
        echo 1 > /proc/sys/kernel/yama/ptrace_scope && exec setpriv --reuid=65534 --regid=65534 --clear-groups \
          --bounding-set=-all --inh-caps=-all env "PATH=$1" "HOME=$2" "$3" doctor --json`;
      const { stdout } = await execute(
        [
          environment.tools.unshare as string,
          "-m",
          "sh",
          "-c",
          words,
          "sh",
          SYSTEM_PATH,
          folder,
          tidemark,
        ],
        { cwd: folder },
      );
      const document = validate(stdout, "doctor") as unknown as DoctorJson;
      const ptrace = document.checks.find(({ check }) => check === "ptrace");
      expect(ptrace).toMatchObject({ state: "limited", found: "ptrace_scope is 1" });
      expect(ptrace?.effect).toMatch(/attach/);
      expect(ptrace?.remedy).toMatch(/sysctl kernel\.yama\.ptrace_scope=0/);
    },
  );

  test("without Python: run cannot start scripts, exit code 1", async () => {
    const path = scratch();
    for (const tool of ["node", "sh", "tr", "readlink"]) {
      symlinkSync(join(bin, tool), join(path, tool));
    }
    const { document, status, check } = await doctor([], { path });
    expect([status, document.ready]).toEqual([1, false]);
    expect(check("python")).toMatchObject({ state: "missing" });
    expect(check("python").remedy).toMatch(/--python/);
  });
});

describe("other software named tidemark", () => {
  let strange: string;
  let env: Record<string, string>;

  beforeAll(() => {
    // What `pip install tidemark` installs: a command and a distribution of another project.
    strange = join(scratch(), "environment");
    mkdirSync(join(strange, "bin"), { recursive: true });
    const { version } = anyInterpreter();
    const minor = version.split(".").slice(0, 2).join(".");
    const site = join(strange, "lib", `python${minor}`, "site-packages");
    mkdirSync(join(site, "tidemark-0.4.dist-info"), { recursive: true });
    writeFileSync(
      join(site, "tidemark-0.4.dist-info/METADATA"),
      "Metadata-Version: 2.1\nName: tidemark\nVersion: 0.4\n",
    );
    mkdirSync(join(site, "tidemark"));
    writeFileSync(join(site, "tidemark/__init__.py"), "");
    writeFileSync(
      join(strange, "pyvenv.cfg"),
      `home = ${join(python, "..")}\nversion = ${version}\n`,
    );
    symlinkSync(python, join(strange, "bin/python3"));
    writeFileSync(join(strange, "bin/tidemark"), "#!/bin/sh\necho a stranger\n");
    chmodSync(join(strange, "bin/tidemark"), 0o755);
    env = { PATH: `${join(strange, "bin")}:${bin}`, HOME: folder };
  });

  test("doctor names both, and the command to use", async () => {
    const { status, check } = await doctor([], { path: env.PATH as string });
    expect(status).toBe(0);
    expect(check("command")).toMatchObject({ state: "limited" });
    expect(check("command").found).toContain(join(strange, "bin/tidemark"));
    expect(check("command").remedy).toContain("tidemark-profiler");
    expect(check("packages")).toMatchObject({ state: "limited" });
    expect(check("packages").found).toMatch(/^tidemark 0\.4 of another project at .*site-packages/);
  });

  test("the first run reports it once; another copy of our launcher is not reported", async () => {
    const words = [tidemark, "run", "-f", "-o", "x.tidemark", "-c", "pass"];
    const first = await execute(words, { cwd: folder, env });
    expect(first.stderr).toMatch(/bin\/tidemark, is another program/);
    expect(first.stderr).toMatch(/tidemark-0\.4\.dist-info belongs to another project/);
    const second = await execute(words, { cwd: folder, env });
    expect(second.stderr).not.toMatch(/another (program|project)/);
    const copy = scratch();
    await execute(["cp", tidemark, join(copy, "tidemark")]);
    const { check } = await doctor([], { path: `${copy}:${bin}` });
    expect(check("command")).toMatchObject({ state: "ok", found: join(copy, "tidemark") });
  });
});

describe("one process", () => {
  const ofPid = (pid: number | undefined) => doctor(["--pid", String(pid)]);

  test("of Python that can be attached to, and one that is recorded already", async () => {
    const waiting = "import time; open('ready', 'w'); time.sleep(60)";
    const started = async (child: {
      pid?: number | undefined;
      kill: (signal: "SIGKILL") => unknown;
    }) => {
      await until(() => readdirSync(folder).includes("ready"));
      const { document, status, check } = await ofPid(child.pid);
      expect([status, document.pid]).toEqual([0, child.pid]);
      expect(check("permission").found).toContain("time.sleep(60)");
      expect(check("Python").found).toContain(anyInterpreter().version);
      expect(check("C library").found).toMatch(/^glibc 2\.\d+$/);
      expect(check("recorder").state).toBe("ok");
      child.kill("SIGKILL");
    };
    await execute([python, "-c", waiting], { cwd: folder, started });
  });

  test("that is not Python: what is missing, exit code 1", async () => {
    await execute(["sleep", "60"], {
      async started(child) {
        const { status, check } = await ofPid(child.pid);
        expect(status).toBe(1);
        expect(check("Python")).toMatchObject({ state: "missing" });
        expect(check("Python").found).toMatch(/no Python interpreter/);
        child.kill("SIGKILL");
      },
    });
  });

  test.skipIf(!isRoot || environment.tools.setpriv === null)(
    "of another user: the missing permission and how to get it",
    async () => {
      const before = [environment.tools.setpriv as string, "--reuid=65534", "--clear-groups"];
      const { status, check } = await doctor(["--pid", String(process.pid)], { before });
      expect(status).toBe(1);
      expect(check("permission")).toMatchObject({ state: "missing" });
      expect(check("permission").remedy).not.toBe("");
    },
  );

  test("that is invalid or does not exist", async () => {
    const run = (pid: string) => execute([tidemark, "doctor", "--pid", pid]);
    expect(errorLine(await run("4194303"))).toMatch(/TM-E020 there is no process 4194303/);
    expect(errorLine(await run("python"))).toMatch(/takes a process id such as 4242/);
  });
});
