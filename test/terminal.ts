/** A terminal for a test: a real pty whose output is shown by a terminal emulator. */
import { type ChildProcessWithoutNullStreams, spawn } from "node:child_process";
import { once } from "node:events";
import { tmpdir } from "node:os";
import { setTimeout as sleep } from "node:timers/promises";
import xterm from "@xterm/headless";
import { anyInterpreter } from "./environment.js";
import { plainEnvironment } from "./run.js";

/** Passes bytes both ways between a pty, where the command runs, and its own input and output. */
const RELAY = `import fcntl, os, pty, select, signal, struct, sys, termios
columns, rows = int(sys.argv[1]), int(sys.argv[2])
pid, terminal = pty.fork()
if pid == 0:
    fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
    os.execvp(sys.argv[3], sys.argv[3:])
print(pid, flush=True)
inputs = [terminal, 0]
while True:
    ready = select.select(inputs, [], [])[0]
    if 0 in ready:
        typed = os.read(0, 65536)
        if typed: os.write(terminal, typed)
        else: inputs.remove(0)
    if terminal in ready:
        try: shown = os.read(terminal, 65536)
        except OSError: shown = b""
        if not shown: break
        while shown: shown = shown[os.write(1, shown):]
status = os.waitpid(pid, 0)[1]
sys.exit(os.WEXITSTATUS(status) if os.WIFEXITED(status) else 128 + os.WTERMSIG(status))`;

const GIVES_UP_AFTER_MS = 120_000;

export interface TerminalSettings {
  /** Default: the system's folder for temporary files. */
  readonly cwd?: string;
  readonly columns?: number;
  readonly rows?: number;
  /** Text that is already on the screen. */
  readonly before?: string;
}

export class Terminal {
  /** Environment variables of the command itself. */
  pid = 0;
  readonly #emulator: xterm.Terminal;
  readonly #relay: ChildProcessWithoutNullStreams;
  readonly #ended: Promise<unknown[]>;

  private constructor(command: readonly string[], settings: TerminalSettings) {
    const { columns = 100, rows = 30, cwd = tmpdir() } = settings;
    this.#emulator = new xterm.Terminal({ cols: columns, rows, allowProposedApi: true });
    this.#emulator.write(settings.before ?? "");
    this.#relay = spawn(
      anyInterpreter().path,
      ["-c", RELAY, String(columns), String(rows), ...command],
      { cwd, env: plainEnvironment(cwd, { TERM: "xterm-256color" }) },
    );
    this.#ended = once(this.#relay, "close");
  }

  static async open(command: readonly string[], settings: TerminalSettings): Promise<Terminal> {
    const terminal = new Terminal(command, settings);
    const { stdout } = terminal.#relay;
    let head = Buffer.alloc(0);
    await new Promise<void>((resolve) => {
      const take = (bytes: Buffer) => {
        head = Buffer.concat([head, bytes]);
        const line = head.indexOf("\n");
        if (line >= 0) {
          stdout.off("data", take);
          terminal.pid = Number(head.subarray(0, line).toString());
          terminal.#emulator.write(head.subarray(line + 1));
          stdout.on("data", (more: Buffer) => terminal.#emulator.write(more));
          resolve();
        }
      };
      stdout.on("data", take);
    });
    return terminal;
  }

  /** The current text on the screen, without trailing blanks. */
  screen(): string {
    const { active } = this.#emulator.buffer;
    const lines = Array.from({ length: this.#emulator.rows }, (_, row) =>
      (active.getLine(active.viewportY + row)?.translateToString(true) ?? "").trimEnd(),
    );
    return lines.join("\n").trimEnd();
  }

  /** "normal" or "alternate". */
  get buffer(): string {
    return this.#emulator.buffer.active.type;
  }

  type(text: string): void {
    this.#relay.stdin.write(text);
  }

  /** Waits until the screen shows the text. */
  async shows(wanted: RegExp | ((screen: string) => boolean)): Promise<string> {
    const fits = typeof wanted === "function" ? wanted : (text: string) => wanted.test(text);
    const deadline = Date.now() + GIVES_UP_AFTER_MS;
    while (!fits(this.screen())) {
      if (Date.now() > deadline || this.#relay.exitCode !== null) {
        throw new Error(`the terminal never showed ${wanted}; it shows:\n${this.screen()}`);
      }
      await sleep(20);
    }
    return this.screen();
  }

  /** Waits for the command's end; 128 + signal if a signal ended it. */
  async ended(): Promise<number> {
    const [status] = await this.#ended;
    await new Promise<void>((resolve) => this.#emulator.write("", resolve));
    return status as number;
  }

  kill(): void {
    this.#relay.kill("SIGKILL");
  }
}
