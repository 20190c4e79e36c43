/** Every command with a wrong pid or the wrong kind of file: one clear line, the right exit code, never a hang. */
import { execFileSync, spawn } from "node:child_process";
import { chmodSync, copyFileSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { DoctorJson } from "../../src/model/documents/doctor_document.js";
import { expectSpeaksClearly } from "../behaviour.js";
import { commandHere } from "../command_here.js";
import { environment, isRoot } from "../environment.js";
import { cli, errorLine, folder, recordApp, recording } from "../recorded_app.js";
import {
  execute,
  type Outcome,
  type RunSettings,
  removeScratch,
  repository,
  tidemark,
} from "../run.js";

beforeAll(async () => {
  await recordApp();
  process.chdir(folder);
  const put = (name: string, content: string | Buffer) =>
    writeFileSync(join(folder, name), content);
  put("empty", "");
  put("junk", Buffer.from([0x6e, 0, 1, 2, 0xff]));
  put("text.txt", "words\n");
  put("data.json", '{"a": 1}\n');
  put("cut.tidemark", readFileSync(recording).subarray(0, 3000));
  mkdirSync(join(folder, "folder"));
  copyFileSync(join(repository, "test/data/gpu/small.pickle.zst"), join(folder, "snapshot"));
});
afterAll(removeScratch);

function expectRefused(outcome: Outcome, context: string): void {
  expect(outcome.stdout, context).toBe("");
  expect(outcome.stderr, context).toMatch(/^tidemark: TM-E\d{3} [^\n]+\n$/);
  expectSpeaksClearly(outcome.stderr);
  expect([2, 3, 4], `${context}: ${outcome.stderr}`).toContain(outcome.status);
}

describe("files", () => {
  const OTHERS = [
    "folder",
    "empty",
    "junk",
    "text.txt",
    "data.json",
    "app.py",
    "pipe",
    "/dev/null",
    "missing",
    "",
  ];
  const READERS: [command: string[], alsoRefused: string[]][] = [
    [["summary"], ["snapshot"]],
    [["report"], ["snapshot"]],
    [["lines"], ["snapshot"]],
    [["diagnose"], []],
    [["export", "--format", "csv"], ["snapshot"]],
    [["live", "--json"], ["snapshot"]],
    [["diff", "app.tidemark"], ["snapshot"]],
    [["heap"], ["snapshot", "app.tidemark"]],
    [["ledger"], ["snapshot", "app.tidemark"]],
    [["import"], ["snapshot", "app.tidemark"]],
    [
      ["heap", "diff", "app.tidemark"],
      ["snapshot", "app.tidemark"],
    ],
    [[], []],
  ];
  test.each(READERS)("%j refuses every other kind in one line", async (command, also) => {
    for (const file of [...OTHERS, ...also]) {
      // A pipe could block the process that opens it: the test's own process must not.
      const outcome = file === "pipe" ? cli([...command, file]) : commandHere(...command, file);
      expectRefused(await outcome, `${command.join(" ")} ${file}`);
    }
  });

  test("a snapshot is refused as well; commands that need a file do not wait for a pipe without a writer", async () => {
    for (const file of ["folder", "empty", "junk", "text.txt", "data.json", "missing", ""]) {
      expectRefused(await cli(["gpu", file]), `gpu ${file}`);
    }
    for (const file of ["folder", "missing"]) {
      expectRefused(await cli(["gpu", "oom", file]), `gpu oom ${file}`);
    }
  });

  test("a truncated recording is read up to its last complete frame", async () => {
    for (const command of [["summary"], ["diagnose"], ["lines"], ["diff", "app.tidemark"]]) {
      const { status, stderr } = await cli([...command, "cut.tidemark"]);
      expect(status, command.join(" ")).toBe(0);
      expect(stderr, command.join(" ")).toMatch(
        command[0] === "lines" ? /^tidemark: cut\.tidemark is damaged: .*\n$/ : /^$/,
      );
    }
    expect((await cli(["lines", "cut.tidemark"])).stdout).toContain("no allocation was sampled");
  });

  test("misspelled names get a suggestion, and files of another kind are named with the command that reads them", async () => {
    expect(errorLine(await cli(["summary", "ap.tidemark"]))).toMatch(
      /did you mean app\.tidemark\?/,
    );
    expect(errorLine(await cli(["gpu", "./snapshto"]))).toMatch(/did you mean \.\/snapshot\?/);
    expect(errorLine(await cli(["summary", "snapshot"]))).toMatch(
      /it is a pickle; if it is an allocator snapshot: tidemark gpu snapshot/,
    );
  });

  test.skipIf(!isRoot || environment.tools.setpriv === null)(
    "unreadable or unwritable files are named with what to do",
    async () => {
      chmodSync(recording, 0o600);
      chmodSync(folder, 0o755);
      const before = [
        environment.tools.setpriv as string,
        "--reuid=65534",
        "--regid=65534",
        "--clear-groups",
      ];
      const nobody = (words: string[]) =>
        execute([tidemark, ...words], {
          cwd: folder,
          before,
          env: { PATH: "/usr/bin:/bin", HOME: "/tmp" },
        });
      for (const command of ["summary", "report", "diagnose", "gpu", "heap", "import"]) {
        const outcome = await nobody([command, recording]);
        expectRefused(outcome, command);
        expect(outcome.status, command).toBe(3);
        expect(outcome.stderr).toMatch(
          /cannot read \S+app\.tidemark: permission denied; run this as a user with permission to read it: \S+ belongs to root/,
        );
      }
      const written = await nobody(["run", "--", "true"]);
      expect(errorLine(written)).toMatch(
        /cannot write \S+: permission denied; name another file with -o: \S+ belongs to root/,
      );
      chmodSync(recording, 0o644);
      chmodSync(folder, 0o777);
    },
  );
});

/** `attach` refuses with the same reason and remedy as `doctor --pid`. */
async function expectAgree(pid: string, check: string, settings: RunSettings = {}): Promise<void> {
  const refused = errorLine(await cli(["attach", pid], settings));
  const { stdout } = await cli(["doctor", "--pid", pid, "--json"], settings);
  const { checks } = JSON.parse(stdout) as DoctorJson;
  const { found = "", remedy = "" } = checks.find((each) => each.check === check) ?? {};
  const reason = found.split(": ").at(-1) as string;
  expect(refused).toContain(reason);
  expect(remedy).not.toBe("");
  expect(refused).toContain(remedy);
}

describe("processes", () => {
  const COMMANDS = [
    ["attach", "--for", "1s", "--wait", "5s"],
    ["detach", "--wait", "5s"],
    ["stacks"],
    ["heap"],
    ["ledger"],
    ["diagnose", "--for", "1s"],
    ["live", "--json"],
    ["gpu"],
    ["doctor", "--pid"],
    [],
  ];

  test.each(COMMANDS.map((command) => [command.join(" "), command]))(
    "'%s' with an invalid or unused pid",
    async (_name, command) => {
      for (const pid of ["4194303", "0", "99999999999", "abc"]) {
        expectRefused(await cli([...(command as string[]), pid]), `${_name} ${pid}`);
      }
    },
  );

  test("a process that is not Python is not touched, and reported", async () => {
    const sleeper = spawn("sleep", ["600"]);
    const pid = String(sleeper.pid);
    for (const command of [["attach", "--wait", "5s"], ["detach"], ["stacks"], ["heap"], ["gpu"]]) {
      expect(errorLine(await cli([...command, pid])), command.join(" ")).toMatch(
        new RegExp(`TM-E022 no Python interpreter found in process ${pid}`),
      );
    }
    expect((await cli(["ledger", pid])).stdout).toContain("sleep 600");
    await expectAgree(pid, "Python");
    expect(sleeper.kill("SIGTERM")).toBe(true);
  });

  test.skipIf(!isRoot || environment.tools.setpriv === null)(
    "another user's process is refused with the same text as in 'doctor'",
    async () => {
      const sleeper = spawn("sleep", ["600"]);
      await expectAgree(String(sleeper.pid), "permission", {
        before: [
          environment.tools.setpriv as string,
          "--reuid=65534",
          "--regid=65534",
          "--clear-groups",
        ],
      });
      sleeper.kill("SIGTERM");
    },
  );

  test("a kernel thread has no readable memory", async (context) => {
    const name = execFileSync("cat", ["/proc/2/comm"], { encoding: "utf8" });
    if (!isRoot || name !== "kthreadd\n") {
      context.skip("this pid namespace has no kernel threads");
    }
    for (const command of [["attach"], ["stacks"], ["heap"], ["ledger"], ["diagnose"], ["gpu"]]) {
      expect(errorLine(await cli([...command, "2"])), command.join(" ")).toMatch(/kernel thread/);
    }
  });
});
