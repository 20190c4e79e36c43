/** Commands on a terminal: its width and colours, and Ctrl-C. */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { folder, python, recordApp } from "./recorded_app.js";
import { execute, type RunSettings, removeScratch, tidemark } from "./run.js";

beforeAll(recordApp);
afterAll(removeScratch);

describe("on a terminal", () => {
  /** Runs a command on its own pty through Python's pty module; the terminal's output is stdout. */
  const onTerminal = (
    words: readonly string[],
    settings: RunSettings & { columns?: number } = {},
  ) =>
    execute(
      [
        python,
        "-c",
        `import fcntl, os, pty, struct, sys, termios
def sized(words):
    fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", 50, ${settings.columns ?? 100}, 0, 0))
    os.execvp(words[0], words)
pid, terminal = pty.fork()
if pid == 0: sized(sys.argv[1:])
out = b""
while True:
    try: data = os.read(terminal, 65536)
    except OSError: break
    if not data: break
    out += data
    if b"INTERRUPT-ME" in out:
        out = out.replace(b"INTERRUPT-ME", b"interrupting")
        os.write(terminal, b"\\x03")
os.write(1, out)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) & 255)`,
        ...words,
      ],
      { cwd: folder, ...settings, env: { TERM: "xterm-256color", ...settings.env } },
    );

  test("the program has the terminal, and the summary its width and colours", async () => {
    const say =
      "import os, sys; print('terminal', [os.isatty(n) for n in (0, 1, 2)], os.get_terminal_size().columns)";
    const words = [tidemark, "run", "-f", "-o", "tty.tidemark", "--", python, "-c", say];
    const { status, stdout } = await onTerminal(words);
    expect(status).toBe(0);
    expect(stdout).toContain("terminal [True, True, True] 100");
    expect(stdout).toContain("\x1b[1m");
    const plain = await onTerminal(words, { env: { NO_COLOR: "1" } });
    expect(plain.stdout).not.toContain("\x1b[");
    expect(plain.stdout).toContain("Precision");
  });

  test.each([60, 80, 120])("nothing is wider than %d columns", async (columns) => {
    const words = [tidemark, "summary", "app.tidemark"];
    const { stdout } = await onTerminal(words, { columns, env: { NO_COLOR: "1" } });
    const widest = Math.max(...stdout.split("\r\n").map((line) => Array.from(line).length));
    expect(widest).toBeLessThanOrEqual(columns);
    expect(stdout).toContain("app.py");
  });

  test("Ctrl-C reaches the program once, and the summary still comes", async () => {
    const wait = `import sys, time
try:
    print("INTERRUPT" + "-ME", flush=True); time.sleep(60)
except KeyboardInterrupt:
    print("caught", flush=True); sys.exit(9)`;
    const { status, stdout } = await onTerminal([
      tidemark,
      "run",
      "-f",
      "-o",
      "int.tidemark",
      "--",
      python,
      "-c",
      wait,
    ]);
    expect(status).toBe(9);
    expect(stdout.match(/caught/g)).toHaveLength(1);
    expect(stdout).toContain("exit code 9");
  });
});
