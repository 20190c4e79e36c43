/**
 * A machine to install on: a root file system whose changes vanish with it. It has its own mount namespace, and its
 * own network namespace without a network:
 *
 *     SPACE/            a folder of the host; in the namespace, a file system in memory
 *       changed/        the differences from the lower root (overlayfs)
 *       root/           the machine's root: /proc, a small /dev, /packages (dist/packages), /wheels
 *
 * The mounts belong to the namespace of one waiting process and end with it, so that removing SPACE
 * cannot delete anything through them.
 */
import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { mkdtempSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { environment } from "../environment.js";
import { type Outcome, repository } from "../run.js";

/** A program that has not ended by then is considered hung. */
const HANGS_AFTER_MS = 300_000;

export interface CommandSettings {
  /** Variables in addition to PATH and HOME; undefined removes one. */
  readonly env?: Readonly<Record<string, string | undefined>>;
  readonly cwd?: string;
  /** Numeric user and group id that no file on the machine names. */
  readonly user?: number;
}

const setUpScript = `
set -e
mount -t tmpfs space "$SPACE"
mkdir "$SPACE/changed" "$SPACE/work" "$SPACE/root"
mount -t overlay machine -o "lowerdir=$LOWER,upperdir=$SPACE/changed,workdir=$SPACE/work" "$SPACE/root"
cd "$SPACE/root"
mkdir -p proc dev packages wheels tmp
mount -t proc proc proc
mount -t tmpfs dev dev
for name in null zero full random urandom tty; do : > dev/$name; mount --bind /dev/$name dev/$name; done
mkdir -m 1777 dev/shm
mount -t tmpfs shm dev/shm
ln -s /proc/self/fd dev/fd
mount --bind "$PACKAGES" packages
mount --bind "$WHEELS" wheels
echo ready
exec cat > /dev/null
`;

export class Machine {
  readonly #lower: string;
  readonly #space: string;
  readonly #holder: ChildProcess;

  private constructor(lower: string, space: string, holder: ChildProcess) {
    this.#lower = lower;
    this.#space = space;
    this.#holder = holder;
  }

  /** @param lower absolute path of a root file system; "/" for a copy of the host itself */
  static async start(lower: string): Promise<Machine> {
    const space = mkdtempSync(join(tmpdir(), "tidemark-machine-"));
    const holder = spawn(
      "unshare",
      ["--mount", "--net", "--propagation", "private", "sh", "-c", setUpScript],
      {
        env: {
          PATH: process.env.PATH,
          SPACE: space,
          LOWER: lower,
          PACKAGES: join(repository, "dist/packages"),
          WHEELS: environment.wheelhouse ?? "",
        },
        // It ends with its stdin, even if the tests are killed.
        stdio: ["pipe", "pipe", "pipe"],
      },
    );
    const machine = new Machine(lower, space, holder);
    await new Promise<void>((resolve, reject) => {
      let errors = "";
      holder.stderr?.on("data", (text) => {
        errors += text;
      });
      holder.stdout?.once("data", () => resolve());
      holder.once("close", () => reject(new Error(`no machine: ${errors.trim()}`)));
    });
    return machine;
  }

  /** Runs a command to its end. */
  async run(command: readonly string[], settings: CommandSettings = {}): Promise<Outcome> {
    const child = this.spawn(command, settings);
    let stdout = "";
    let stderr = "";
    child.stdout?.setEncoding("utf8").on("data", (text) => {
      stdout += text;
    });
    child.stderr?.setEncoding("utf8").on("data", (text) => {
      stderr += text;
    });
    const timer = setTimeout(() => child.kill("SIGKILL"), HANGS_AFTER_MS);
    return await new Promise((resolve, reject) => {
      child.once("error", reject);
      child.once("close", (status, signal) => {
        clearTimeout(timer);
        resolve({ status, signal, stdout, stderr });
      });
    });
  }

  /** Runs a command that must succeed; returns its stdout. */
  async must(command: readonly string[], settings: CommandSettings = {}): Promise<string> {
    const { status, signal, stdout, stderr } = await this.run(command, settings);
    if (status !== 0) {
      throw new Error(`${command.join(" ")}: ${signal ?? status}\n${stdout}${stderr}`);
    }
    return stdout;
  }

  /** Starts a command by exec, so that the child's pid is the program's. */
  spawn(command: readonly string[], { env, cwd = "/", user }: CommandSettings = {}): ChildProcess {
    const variables = {
      PATH: "/usr/local/bin:/usr/bin:/bin",
      HOME: "/root",
      LANG: "C.UTF-8",
      PYTHONDONTWRITEBYTECODE: "1",
      ...env,
    };
    const assignments = Object.entries(variables).flatMap(([name, value]) =>
      value === undefined ? [] : [`${name}=${value}`],
    );
    const words = [
      ...["--target", String(this.#holder.pid), "--mount", "--net", "--"],
      ...["chroot", ...(user === undefined ? [] : [`--userspec=${user}:${user}`, "--groups="])],
      ...[join(this.#space, "root"), "/usr/bin/env", "-i", ...assignments],
      ...["sh", "-c", 'cd "$1" && shift && exec "$@"', "sh", cwd, ...command],
    ];
    return spawn("nsenter", words, { stdio: ["ignore", "pipe", "pipe"] });
  }

  /** Text of a file. */
  read(path: string): string {
    return this.#inNamespace("cat", join(this.#space, "root", path));
  }

  /** Writes a file and the folders above it. */
  write(path: string, text: string, mode = "644"): void {
    const script = 'mkdir -p "$(dirname "$1")" && printf %s "$2" > "$1" && chmod "$3" "$1"';
    this.#inNamespace("sh", "-c", script, "sh", join(this.#space, "root", path), text, mode);
  }

  /** Mounts a folder over itself so that nobody can write to it. */
  makeReadOnly(path: string): void {
    const script = 'mount --bind "$1" "$1" && mount -o remount,bind,ro "$1"';
    this.#inNamespace("sh", "-c", script, "sh", join(this.#space, "root", path));
  }

  /** Undoes {@link makeReadOnly}. */
  makeWritable(path: string): void {
    this.#inNamespace("umount", join(this.#space, "root", path));
  }

  /** Paths of the files, links and folders in which the machine differs from its root, sorted. */
  changes(): string[] {
    const script = `cd '${this.#space}/changed' && find . -mindepth 1 -printf '%y%p\\n'`;
    const listed = this.#inNamespace("sh", "-c", script);
    return listed
      .split("\n")
      .flatMap((line) => (line === "" ? [] : [{ kind: line[0], path: line.slice(2) }]))
      .filter(({ kind, path }) => kind !== "d" || !isFolder(join(this.#lower, path)))
      .map(({ path }) => path)
      .sort();
  }

  stop(): void {
    this.#holder.removeAllListeners("close");
    this.#holder.kill("SIGKILL");
    rmSync(this.#space, { recursive: true, force: true });
  }

  #inNamespace(...command: string[]): string {
    return execFileSync("nsenter", ["--target", String(this.#holder.pid), "--mount", ...command], {
      encoding: "utf8",
      maxBuffer: 64 << 20,
      stdio: ["ignore", "pipe", "pipe"],
    });
  }
}

/** Whether only the time of an existing folder has changed. */
function isFolder(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isDirectory() ?? false;
}

/** Why machines are unavailable here, or null. */
export function noMachineBecause(): string | null {
  if (process.getuid?.() !== 0) {
    return "needs root";
  }
  if (environment.wheelhouse === null || environment.cleanRoots.bookworm === undefined) {
    return "needs the wheels and the Debian 12 of the set-up";
  }
  if (environment.tools.nsenter === null) {
    return "needs nsenter";
  }
  return null;
}
