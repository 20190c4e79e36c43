/**
 * Programs that lie, destroy and end at the worst moment: the collector neither fails nor waits for them, reports nothing
 * wrong about other programs, and opens no file outside of their own.
 */
import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { present } from "../../src/model/base/present.js";
import type { WatchJson } from "../../src/model/documents/watch_document.js";
import { anyInterpreter, isRoot } from "../environment.js";
import { execute, open, summaryOf, tidemark, until } from "../run.js";
import { IDLE, LEAK, stopped, withWatchTest } from "./watched.js";

const watched = withWatchTest();

/** Names that would confuse a reader of /proc/PID/stat, and a command line that controls a terminal. */
const LIAR = `import ctypes, itertools, os, time
libc = ctypes.CDLL(None)
fields = open("/proc/self/stat").read().rsplit(")", 1)[1].split()
start, end = int(fields[45]), int(fields[46])
lies = [b") R 1 1 1", b"a\\nb) Z 0", b"\\x1b[2J\\x07", b"((((", b"\\xff\\xfe"]
for n in itertools.count():
    libc.prctl(15, lies[n % len(lies)], 0, 0, 0)
    ctypes.memmove(start, os.urandom(8) + b"\\x1b]0;x\\x07\\n\\r\\0\\0", min(20, end - start))
    time.sleep(0.01)
`;
/** Moves the place where its command line and environment are read to a mapping of 3 GiB. */
const HUGE = `import ctypes, mmap, time
libc = ctypes.CDLL(None, use_errno=True)
libc.mmap.restype = ctypes.c_void_p
size = 3 << 30
at = libc.mmap(None, ctypes.c_size_t(size), 3, 0x4022, -1, 0)
for option, value in ((9, at + size - 1), (8, at), (11, at + size - 1), (10, at)):
    if libc.prctl(35, option, ctypes.c_ulong(value), 0, 0) != 0:
        libc.prctl(35, option, ctypes.c_ulong(value), 0, 0)
print("moved", flush=True)
while True: time.sleep(0.1)
`;
/** Detaches itself and forks for a minute, because nothing can end it; the children end at once, or after they have detached, too. */
const FORKER = `import os, time
end = time.monotonic() + 60
if os.fork() > 0: os._exit(0)
os.setsid()
if os.fork() > 0: os._exit(0)
while time.monotonic() < end:
    pid = os.fork()
    if pid == 0:
        os.setsid()
        if os.fork() > 0: os._exit(0)
        time.sleep(0.05)
        os._exit(0)
    os.waitpid(pid, 0)
    time.sleep(0.01)
`;
/** Writes rubbish over everything that it shares with the recorder, first over the headers. */
const VANDAL = `import ctypes, os, time
def pools():
    for line in open("/proc/self/maps"):
        words = line.split()
        if "tidemark-pool" in line and "w" in words[1]:
            begin, end = (int(word, 16) for word in words[0].split("-"))
            yield begin, end - begin
kept = []
while True:
    kept.append(os.urandom(10_000))
    for begin, length in pools():
        time.sleep(0.5)
        for offset in (8, 64, 4096, 65536, length // 2):
            if offset + 4096 <= length:
                ctypes.memmove(begin + offset, os.urandom(4096), 4096)
    time.sleep(0.02)
`;
/** Reports each file in /tmp (inotify), also one that exists only for a moment. */
const CREATED = `import ctypes
IN_CREATE = 0x100
created = ctypes.CDLL(None).inotify_init()
ctypes.CDLL(None).inotify_add_watch(created, b"/tmp", IN_CREATE)
`;
/** Ends as soon as it notices a step of being entered. */
const endsWhen = (condition: string) => `${CREATED}
import os, sys, threading, time
def notices():
    while not (${condition}): time.sleep(0.0005)
    os.kill(os.getpid(), 9)
threading.Thread(target=notices, daemon=True).start()
kept = []
while True:
    kept.append(os.urandom(1000))
    time.sleep(0.001)
`;
const STEPS = {
  file: `b".tidemark-%d" % os.getpid() in os.read(created, 1 << 16)`,
  module: `"_tidemark_agent" in sys.modules`,
  pool: `"tidemark-pool" in open("/proc/self/maps").read()`,
};
/**
 * Puts a link to a secret, or a FIFO, in the place of each file through which it is entered, as soon as the file exists:
 * a thread of its own waits for it, while the main thread, which would run the file, sleeps.
 */
const replaces = (name: string, replacement: string) => `${CREATED}
import os, re, threading, time
secret = os.environ["SECRET"]
def replace():
    while True:
        events = os.read(created, 1 << 16)
        for name in re.findall(rb"[.]tidemark-%d-[0-9a-f]+(?:[.]py)?(?=\\0)" % os.getpid(), events):
            path = "/tmp/" + name.decode()
            try:
                os.unlink(path)
                ${replacement}
                open(secret + "-${name}", "w").close()
            except OSError:
                pass
threading.Thread(target=replace, daemon=True).start()
while True: time.sleep(0.1)
`;
/** Maps a file with an interpreter's name, and puts a FIFO in its place. */
const FIFO = `import mmap, os, time
path = os.environ["SECRET"] + "-libpython3.11.so.1.0"
path = os.path.join(os.path.dirname(path), "libpython3.11.so.1.0")
with open(path, "w+b") as file:
    file.write(bytes(4096)); file.flush()
    kept = mmap.mmap(file.fileno(), 4096)
os.unlink(path)
os.mkfifo(path)
while True: time.sleep(0.1)
`;

test.skipIf(!isRoot)(
  "a crowd of hostile programs beside an honest one",
  async () => {
    const secret = join(watched().folder, "secret");
    const text = "root:the-secret-of-the-host:1:";
    writeFileSync(secret, `${text}\n`, { mode: 0o600 });
    process.env.SECRET = secret;
    const honest = watched().python(LEAK, "honest");
    const hostile: Record<string, string> = {
      ...{ liar: LIAR, huge: HUGE, forker: FORKER, vandal: VANDAL, fifo: FIFO },
      link: replaces("link", "os.symlink(secret, path)"),
      pipe: replaces("pipe", "os.mkfifo(path)"),
      folder: replaces("folder", "os.mkdir(path)"),
    };
    for (const [name, step] of Object.entries(STEPS)) {
      hostile[`ends-${name}`] = endsWhen(step);
    }
    for (const [name, program] of Object.entries(hostile)) {
      watched().python(program, name);
    }
    delete process.env.SECRET;
    const path = watched().policy("{warm_up: 1s, agents: 20}");
    const { child, said } = watched().watch("--config", path);
    const line = (name: string, rest: string) =>
      said().includes(`${watched().name}-${name} 7 ${rest}`);
    await until(() => line("honest", `(process ${honest.pid}): recording it with the agent`));
    await until(() => watched().recordingOf("honest", true) !== undefined);
    await until(() => open(present(watched().recordingOf("honest", true))).snapshots.length > 4);
    await until(() =>
      ["liar", "huge", "vandal", "fifo"].every((name) => said().includes(`-${name} 7 (`)),
    );
    const replaced = ["link", "pipe", "folder"].map((name) => `${secret}-${name}`);
    for (const file of replaced) {
      await until(() => existsSync(file));
    }
    // Those that end when they are entered have ended, and the others were recorded meanwhile.
    await until(
      () =>
        watched().children.filter(
          ({ exitCode, signalCode }) => exitCode !== null || signalCode === "SIGKILL",
        ).length >= 4,
    );

    const { stdout } = await execute([tidemark, "watch", "--once", "--config", path, "--json"]);
    const rows = (JSON.parse(stdout) as WatchJson).programs.filter((row) => watched().isOurs(row));
    const honestRow = rows.find(({ pid }) => pid === honest.pid);
    expect(honestRow).toMatchObject({
      service: `${watched().name}-honest`,
      version: "7",
      processes: 1,
    });
    const table = await execute([tidemark, "watch", "--once", "--config", path]);

    expect(child.exitCode).toBeNull();
    expect(await stopped(child)).toBe(0);
    expect(said()).toContain(`${watched().name}-honest 7 (process ${honest.pid}): left as it was`);
    expect(said()).not.toContain("TM-E001");
    for (const printed of [said(), table.stdout]) {
      // biome-ignore lint/suspicious/noControlCharactersInRegex: what must not be printed
      expect(printed).not.toMatch(/[\u0000-\u0009\u000b-\u001f\u007f]/);
    }
    const recording = present(watched().recordingOf("honest", true));
    const { sites } = await summaryOf(recording);
    expect(sites[0]?.stack.map((frame) => frame.function)).toContain("remember");
    const { processes, meta } = open(recording);
    expect(processes.map(({ pid }) => pid)).toEqual([honest.pid]);
    expect(meta.identity).toMatchObject({ service: `${watched().name}-honest`, version: "7" });
    for (const file of readdirSync(watched().recordingsFolder)) {
      const bytes = file.endsWith(".tidemark")
        ? readFileSync(join(watched().recordingsFolder, file))
        : Buffer.alloc(0);
      expect(bytes.includes(text)).toBe(false);
    }
    expect(said()).not.toContain(text);
    expect(honest.exitCode).toBeNull();
  },
  300_000,
);

test.skipIf(!isRoot)(
  "folders that are links lead to the program's own files, not to the host's",
  async () => {
    const { folder } = watched();
    const [root, outside] = [join(folder, "root"), join(folder, "outside")];
    mkdirSync(outside);
    for (const name of [
      "usr",
      "etc",
      "proc",
      "var",
      "dev",
      "root",
      "work",
      "lib",
      "lib64",
      "bin",
    ]) {
      mkdirSync(join(root, name), { recursive: true });
    }
    for (const name of ["tmp", "var/tmp", "dev/shm", "run"]) {
      symlinkSync(outside, join(root, name));
    }
    const { path: python } = anyInterpreter();
    const mounts = ["usr", "etc", "root", "lib", "lib64", "bin"]
      .filter((name) => existsSync(`/${name}`))
      .map((name) => `mount --rbind /${name} ${root}/${name}`);
    const script = `${mounts.join(" && ")} && mount -t proc proc ${root}/proc && exec chroot ${root} ${python} -c "$PROGRAM"`;
    const program = spawn("unshare", ["--mount", "sh", "-c", script], {
      env: {
        ...process.env,
        PROGRAM: LEAK,
        TIDEMARK_SERVICE: `${watched().name}-chroot`,
        TIDEMARK_VERSION: "7",
      },
      stdio: "ignore",
      detached: true,
    });
    watched().children.push(program);
    const { child, said } = watched().watch("--config", watched().policy());
    await until(() => said().includes(`${watched().name}-chroot 7 (`));
    expect(readdirSync(outside)).toEqual([]);
    expect(await stopped(child)).toBe(0);
    expect(said()).toMatch(/-chroot 7 \(process \d+\): recording it with the agent/);
    expect(readdirSync(outside)).toEqual([]);
  },
);

test.skipIf(!isRoot)("a pid that is used again at once is another program", async () => {
  const first = watched().python(IDLE, "outside");
  const { child, said } = watched().watch("--config", watched().policy("{warm_up: 1s, poll: 1s}"));
  await until(() => watched().recordingOf("outside", false) !== undefined);
  const pid = present(first.pid);
  const LARGE = "kept = bytearray(300_000_000)\n";
  const service = `${watched().name}-second`;
  const gone = once(first, "exit");
  first.kill("SIGKILL");
  await gone;
  // clone3 of linux/sched.h names the pid: no other process of the machine can take it in between.
  const program = `import ctypes, os, signal, sys
CLONE3 = 435
pids = (ctypes.c_int * 1)(int(sys.argv[1]))
arguments = (ctypes.c_uint64 * 10)()
arguments[4], arguments[8], arguments[9] = signal.SIGCHLD, ctypes.addressof(pids), 1
libc = ctypes.CDLL(None, use_errno=True)
pid = libc.syscall(CLONE3, ctypes.byref(arguments), ctypes.c_size_t(ctypes.sizeof(arguments)))
if pid == 0:
    os.setsid()
    for number in range(3): os.dup2(os.open(os.devnull, os.O_RDWR), number)
    os.execv(sys.argv[2], [sys.argv[2], "-c", sys.argv[3]])
print(pid if pid > 0 else os.strerror(ctypes.get_errno()))`;
  const words = ["-c", program, String(pid), anyInterpreter().path, LARGE + IDLE];
  const env = { ...process.env, TIDEMARK_SERVICE: service, TIDEMARK_VERSION: "7" };
  const printed = execFileSync(anyInterpreter().path, words, { encoding: "utf8", env });
  try {
    expect(printed.trim()).toBe(String(pid));
    await until(() =>
      watched()
        .recordings()
        .some((file) => file.startsWith(`${service}-${pid}-`)),
    );
    await until(() =>
      said().includes(`${service} 7 (process ${pid}): recording it with the agent`),
    );
    expect(await stopped(child)).toBe(0);
    const before = open(present(watched().recordingOf("outside", false)));
    const largest = before.series.flatMap(({ values }) => [...(values.get("rssBytes") ?? [])]);
    expect(Math.max(...largest)).toBeLessThan(200e6);
    expect(before.meta.identity?.service).toBe(`${watched().name}-outside`);
    const after = watched()
      .recordings()
      .filter((file) => file.startsWith(`${service}-`));
    const { meta } = open(join(watched().recordingsFolder, present(after[0])));
    expect(meta).toMatchObject({ pid, identity: { service } });
  } finally {
    process.kill(pid, "SIGKILL");
  }
});
