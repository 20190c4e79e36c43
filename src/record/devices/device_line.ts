/**
 * A connection to a thread in a running program that reports its devices (python/tidemark/_device_beacon.py).
 *
 *   a socket in a folder of the program's ── remote exec starts the thread ── it connects
 *     lines of JSON from it, commands to it ... either side may end: the other sees the connection close
 *
 * The program's main thread starts the other thread without waiting, because it may hold any lock at that
 * moment, including its allocator's. The thread waits for those locks; no answer in time is TM-E076.
 *
 * | what | outcome |
 * |---|---|
 * | not entered: ended, not permitted, unknown, timed out | as for any remote exec (TM-E020 to E036) |
 * | none of its folders is writable | TM-E034 |
 * | the thread fails | it reports that in a line and ends |
 * | this process is killed | the connection closes: the thread switches off what it switched on, and ends |
 * | the program is killed or execs | the connection closes |
 */
import { chmodSync, readFileSync } from "node:fs";
import { createServer, type Socket } from "node:net";
import { join } from "node:path";
import { pythonText } from "../../cpython/entry/exchange.js";
import { noFolder, ProgramFolder } from "../../cpython/entry/program_folder.js";
import type { RemoteAnswer, RemoteExecOptions } from "../../cpython/entry/remote_exec.js";
import { isLeaving, readAttachPermission, readStat, refusalOf } from "../../linux/index.js";
import { PYTHON_FOLDER } from "../../linux/installation.js";
import type { Millis, Pid } from "../../model/base/units.js";
import { entryInterrupted } from "../../model/errors/attach_errors.js";
import { devicesSilent } from "../../model/errors/device_errors.js";
import { processGone } from "../../model/errors/errors.js";
import { enterProcess } from "../process/enter_process.js";

/** From the start of the thread to its connection. */
const CONNECT_MS: Millis = 30_000;
/** Largest message; a reading with every block of a large allocator is far smaller. */
const LONGEST_LINE = 256 << 20;
/** Modules of the package `tidemark`, in the order of their dependencies. */
const MODULES = ["_device_figures", "_device_ranks", "_device_watch", "_device_beacon"];

/** Their names in the program, while the thread runs. */
const PACKAGE = "_tidemark_devices";

/** One line of JSON from the program. */
export type DeviceMessage = Readonly<Record<string, unknown>>;

export interface DeviceLine {
  readonly entered: RemoteAnswer;
  /** Called with each message, in order, starting with those that arrived before it was set. */
  listen(heard: (message: DeviceMessage) => void, ended: () => void): void;
  say(word: "dump"): void;
  /** Makes the thread switch off what it switched on, and end. */
  close(): void;
}

/** `options` go to the thread. Throws TidemarkError. */
export async function openDeviceLine(
  pid: Pid,
  options: Readonly<Record<string, unknown>>,
  exec: RemoteExecOptions,
): Promise<DeviceLine> {
  if (isLeaving(readStat(pid))) {
    throw processGone(pid);
  }
  const permission = readAttachPermission(pid);
  if (!permission.ok) {
    throw refusalOf(pid, permission);
  }
  const place = await listenIn(pid);
  try {
    const work = workOf({ ...options, address: place.address });
    const entered = await enterProcess(pid, work, exec);
    const socket = await place.connected(CONNECT_MS);
    if (socket === null) {
      throw devicesSilent(pid, CONNECT_MS, "");
    }
    return lineOf(entered, socket);
  } finally {
    place.close();
  }
}

/** Waits for the first message that has the key. Throws TM-E076, TM-E041 for an interrupt. */
export function firstMessage(
  pid: Pid,
  line: DeviceLine,
  { key, waitMs, until }: { key: string; waitMs: Millis; until?: AbortSignal | undefined },
): Promise<DeviceMessage> {
  return new Promise((resolve, reject) => {
    const stop = () => reject(entryInterrupted(pid));
    if (until?.aborted) {
      stop();
    }
    until?.addEventListener("abort", stop, { once: true });
    const timer = setTimeout(() => reject(devicesSilent(pid, waitMs, "")), waitMs);
    let said = "";
    line.listen(
      (message) => {
        said = typeof message.note === "string" ? message.note : said;
        if (key in message) {
          clearTimeout(timer);
          resolve(message);
        }
      },
      () => {
        clearTimeout(timer);
        reject(devicesSilent(pid, waitMs, said || "the connection to it closed"));
      },
    );
  });
}

/**
 * The body of a function that defines the modules inside their own thread and imports nothing in the calling
 * thread. A patched thread starter (gevent) would run it in the program's own loop, so the original one is
 * used.
 */
function workOf(options: Readonly<Record<string, unknown>>): string {
  const sources = MODULES.map((name) => readFileSync(join(PYTHON_FOLDER, `${name}.py`), "utf8"));
  const list = (texts: readonly string[]) => `[${texts.map(pythonText).join(", ")}]`;
  return `import _thread, sys
monkey = sys.modules.get("gevent.monkey")
start = monkey.get_original("_thread", "start_new_thread") if monkey else _thread.start_new_thread
def run():
    names = ${list(MODULES.map((name) => `${PACKAGE}.${name}`))}
    try:
        import json
        from types import ModuleType
        package = ModuleType("${PACKAGE}")
        package.__path__ = []
        sys.modules["${PACKAGE}"] = package
        for name, source in zip(names, ${list(sources)}):
            module = ModuleType(name)
            module.__package__ = "${PACKAGE}"
            sys.modules[name] = module
            exec(compile(source, "<tidemark>", "exec"), module.__dict__)
        module.run(json.loads(${pythonText(JSON.stringify(options))}))
    except BaseException:
        pass  # nobody listens, and the program is not affected
    finally:
        for name in ["${PACKAGE}"] + names:
            sys.modules.pop(name, None)
start(run, ())
return ""`;
}

interface Place {
  /** Path as seen by the program. */
  readonly address: string;
  /** null: no connection in time. */
  connected(waitMs: Millis): Promise<Socket | null>;
  close(): void;
}

const SOCKET = ".socket";

async function listenIn(pid: Pid): Promise<Place> {
  for (const folder of ProgramFolder.of(pid)) {
    const path = folder.here(SOCKET);
    const server = createServer();
    const came = new Promise<Socket>((resolve) => server.once("connection", resolve));
    const close = () => {
      server.close(); // also removes the socket's file
      folder.close();
    };
    try {
      await new Promise<void>((resolve, reject) => {
        server.once("error", reject);
        server.listen(path, resolve);
      });
      chmodSync(path, 0o600);
      folder.handOver(SOCKET);
      return {
        address: folder.there(SOCKET),
        close,
        connected: (waitMs) => withTimeout(came, waitMs),
      };
    } catch {
      close();
    }
  }
  throw noFolder(pid);
}

function withTimeout(came: Promise<Socket>, waitMs: Millis): Promise<Socket | null> {
  return new Promise((resolve) => {
    const timer = setTimeout(() => resolve(null), waitMs);
    void came.then((socket) => {
      clearTimeout(timer);
      resolve(socket);
    });
  });
}

function lineOf(entered: RemoteAnswer, socket: Socket): DeviceLine {
  let heard: ((message: DeviceMessage) => void) | null = null;
  let ended: () => void = () => {};
  const early: DeviceMessage[] = [];
  const pieces: Buffer[] = [];
  let length = 0;
  let closed = false;
  socket.on("data", (data: Buffer) => {
    let from = 0;
    for (let end = data.indexOf(10); end >= 0; end = data.indexOf(10, from)) {
      pieces.push(data.subarray(from, end));
      take(Buffer.concat(pieces.splice(0)));
      length = 0;
      from = end + 1;
    }
    pieces.push(data.subarray(from));
    length += data.length - from;
    if (length > LONGEST_LINE) {
      socket.destroy();
    }
  });
  socket.on("error", () => {}); // "close" follows
  socket.on("close", () => {
    closed = true;
    ended();
  });
  function take(line: Buffer): void {
    let message: unknown;
    try {
      message = JSON.parse(line.toString("utf8"));
    } catch {
      return;
    }
    if (typeof message !== "object" || message === null) {
      return;
    }
    if (heard === null) {
      early.push(message as DeviceMessage);
    } else {
      heard(message as DeviceMessage);
    }
  }
  return {
    entered,
    listen(onMessage, onEnd) {
      heard = onMessage;
      ended = onEnd;
      early.splice(0).forEach(onMessage);
      if (closed) {
        onEnd();
      }
    },
    say(word) {
      if (!closed) {
        socket.write(`${word}\n`);
      }
    },
    close() {
      socket.end("stop\n");
      socket.unref();
    },
  };
}
