/** `tidemark completion`: real shells at a real terminal, with the TAB key. */
import { existsSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { COMMANDS } from "../src/cli/command_list.js";
import { SHELLS } from "../src/cli/completion/scripts.js";
import { cli, errorLine, folder, python, recordApp, validate } from "./recorded_app.js";
import { execute, removeScratch, scratch, tidemark } from "./run.js";
import { Terminal } from "./terminal.js";

/** How each shell is started without a person's settings, and reads its script. */
const STARTS = {
  bash: {
    words: ["bash", "--norc", "--noprofile", "-i"],
    source: 'eval "$(tidemark completion bash)"',
  },
  zsh: { words: ["zsh", "-f", "-i"], source: "source <(tidemark completion zsh)" },
  fish: { words: ["fish", "--no-config", "-i"], source: "tidemark completion fish | source" },
} as const;

const summaryOf = (name: string) =>
  COMMANDS.find((command) => command.name === name)?.summary ?? "";

const TAB = "\t";
const CLEAR_LINE = "\x15";

let bin: string;
beforeAll(async () => {
  await recordApp();
  bin = scratch();
  symlinkSync(tidemark, join(bin, "tidemark"));
  writeFileSync(join(folder, "marked program.py"), "");
});
afterAll(removeScratch);

describe.each(SHELLS)("%s", (shell) => {
  let terminal: Terminal | undefined;
  afterEach(() => terminal?.kill());

  const open = async (): Promise<Terminal> => {
    const { words, source } = STARTS[shell];
    terminal = await Terminal.open([...words], { cwd: folder, columns: 120, rows: 60 });
    terminal.type(`export PATH=${bin}:$PATH; clear\r`);
    terminal.type(`${source}; echo re''ady\r`);
    await terminal.shows(/^ready$/m);
    return terminal;
  };

  test("commands, options, values, recordings and scripts", async (context) => {
    if (!(await isInstalled(shell))) {
      context.skip(`${shell} is not installed`);
    }
    const shown = await open();
    const steps: [typed: string, completed: RegExp][] = [
      ["tidemark summ", /tidemark summary #/],
      ["tidemark report --fo", /tidemark report --force #/],
      ["tidemark run --nati", /tidemark run --native #/],
      ["tidemark export app.tidemark --format spe", /--format speedscope #/],
      ["tidemark export app.tidemark --format=par", /--format=parquet #/],
      ["tidemark diff app.tidemark@pe", /app\.tidemark@peak #/],
      ["tidemark report ap", /tidemark report app\.tidemark #/],
      ["tidemark run mark", /tidemark run (?:marked\\ program\.py|'marked program\.py')/],
      ["tidemark completion fi", /tidemark completion fish #/],
      ["tidemark gpu oo", /tidemark gpu oom #/],
    ];
    for (const [typed, completed] of steps) {
      shown.type(`${typed}${TAB}#`);
      await shown.shows(completed);
      shown.type(CLEAR_LINE);
    }
  });

  test("pids with their command lines, commands with what they do", async (context) => {
    if (!(await isInstalled(shell))) {
      context.skip(`${shell} is not installed`);
    }
    writeFileSync(join(folder, "waits_in_this_test.py"), "import time; time.sleep(600)");
    await execute([python, "waits_in_this_test.py"], {
      cwd: folder,
      async started(child) {
        try {
          const shown = await open();
          shown.type(`tidemark attach ${String(child.pid).slice(0, -1)}${TAB}${TAB}`);
          await shown.shows(
            (screen) =>
              new RegExp(`attach ${child.pid}\\b`).test(screen) ||
              /waits_in_this_test/.test(screen),
          );
          shown.type(`${CLEAR_LINE}tidemark de${TAB}${TAB}`);
          await shown.shows(/tidemark detach/);
          shown.type(`${CLEAR_LINE}tidemark d${TAB}${TAB}${shell === "fish" ? "" : TAB}`);
          await shown.shows(new RegExp(`diagnose.*${summaryOf("diagnose").slice(0, 24)}`));
        } finally {
          child.kill("SIGKILL");
        }
      },
    });
  });

  test("nothing of the line is evaluated", async (context) => {
    if (!(await isInstalled(shell))) {
      context.skip(`${shell} is not installed`);
    }
    const shown = await open();
    shown.type(`tidemark summary "$(touch ${folder}/evil)" --deb${TAB}`);
    await shown.shows(/--debug/);
    expect(existsSync(join(folder, "evil"))).toBe(false);
  });
});

async function isInstalled(shell: string): Promise<boolean> {
  return (await execute(["sh", "-c", `command -v ${shell}`])).status === 0;
}

describe("the candidates for a shell", () => {
  const answer = async (...words: string[]) => (await cli(["__complete", ...words])).stdout;

  test("contains candidates with descriptions, and the kinds of files that may follow", async () => {
    expect(await answer("zsh", "sum")).toBe(`summary\t${summaryOf("summary")}\n`);
    expect(await answer("fish", "report", "")).toBe(":files\t.tidemark\n");
    expect(await answer("fish", "report", "app.tidemark", "-o", "")).toBe(":files\t\n");
    expect(await answer("zsh", "run", "app.py", "--nat")).toBe(":files\t\n");
    expect(await answer("zsh", "run", "-m", "x", "--nat")).toBe(":files\t\n");
    expect(await answer("zsh", "run", "--nat")).toMatch(/^--native\t/);
    expect(await answer("bash", "csv,pp", "export", "--format", "=", "csv,pp")).toBe(
      "csv,pprof\t\n",
    );
    expect(await answer("zsh", "4242", "--fo")).toMatch(/^--for\t.*\n--force\t/);
    expect(await answer("zsh", "diagnose", "--fail-on", "python-leak,native")).toMatch(
      /^python-leak,native-leak\t$/m,
    );
  });

  test("is silent if nothing can be completed", async () => {
    for (const words of [["zsh", "nothing", ""], ["zsh"], [], ["tcsh", "summary", "--at", "x"]]) {
      const { stdout, stderr } = await cli(["__complete", ...words]);
      expect([stdout.includes("TM-E"), stderr]).toEqual([false, ""]);
    }
  });
});

test("the script as JSON; another shell is refused in one line", async () => {
  const document = validate((await cli(["completion", "zsh", "--json"])).stdout, "completion");
  expect(document.script).toBe((await cli(["completion", "zsh"])).stdout);
  expect(errorLine(await cli(["completion", "tcsh"]))).toMatch(
    /completion takes one of bash, zsh, fish/,
  );
});
