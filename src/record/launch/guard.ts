import { writeSync } from "node:fs";
import { Socket } from "node:net";
import { timeAt } from "../../linux/this_process/clock.js";
import type { Bytes, Pid } from "../../model/base/units.js";
import { badUsage, internalError } from "../../model/errors/errors.js";
import type { ExitReport } from "../process/exit_report.js";

type PoolAnswer =
  | { readonly made: true; readonly guardPid: Pid; readonly descriptor: number }
  | { readonly made: false; readonly errno: number; readonly reason: string };

type StartAnswer =
  | { readonly started: true; readonly pid: Pid; readonly startTicks: number }
  | { readonly started: false; readonly errno: number; readonly reason: string };

/** The recorder's end of the socket to tidemark-guard; docs/spine.md lists the messages. */
export class GuardClient {
  readonly #socket: Socket;
  #received = "";
  readonly #waiting: {
    readonly verbs: readonly string[];
    resolve(fields: string[]): void;
  }[] = [];
  #reportExit!: (report: ExitReport | null) => void;

  /** Settles when the program has ended; null if the guard itself has ended. */
  readonly exited: Promise<ExitReport | null>;

  readonly #descriptor: number;

  /** `descriptor`: the value of TIDEMARK_GUARD_FD, set by the guard. */
  constructor(descriptor: number) {
    this.#descriptor = descriptor;

    this.exited = new Promise((resolve) => {
      this.#reportExit = resolve;
    });
    try {
      this.#socket = new Socket({ fd: descriptor, readable: true, writable: true });
    } catch (cause) {
      throw badUsage(
        `the recorder was not started by tidemark-guard: ${(cause as Error).message}`,
        "start programs with: tidemark run PROGRAM",
      );
    }
    this.#socket.setEncoding("utf8");
    this.#socket.on("data", (text: string) => this.#hear(text));
    this.#socket.on("error", () => this.#reportExit(null));
    this.#socket.on("close", () => this.#close());
  }

  async makePool(slots: number, periodBytes: Bytes, options: number): Promise<PoolAnswer> {
    this.#say("pool", String(slots), String(periodBytes), String(options));
    const [verb, first, second] = await this.#answer("pool", "nopool");
    return verb === "pool"
      ? { made: true, guardPid: Number(first), descriptor: Number(second) }
      : { made: false, errno: Number(first), reason: second ?? "" };
  }

  /** Where the pool's used slots are written if the recorder dies; "" cancels this. */
  setOrphan(path: string): void {
    this.#say("orphan", bytesOf(path));
  }

  setEnvironment(name: string, value: string): void {
    this.#say("env", bytesOf(name), bytesOf(value));
  }

  /** `command`: argv, in the program's own bytes. */
  async start(command: readonly Buffer[]): Promise<StartAnswer> {
    this.#say("exec", ...command.map((argument) => argument.toString("latin1")));
    const [verb, first, second] = await this.#answer("started", "failed");
    return verb === "started"
      ? { started: true, pid: Number(first), startTicks: Number(second) }
      : { started: false, errno: Number(first), reason: second ?? "" };
  }

  /** This recorder leaves before the program has ended; the guard will start another one with the same arguments. */
  handOver(): void {
    this.#say("alone");
    this.#socket.end();
  }

  /** Sent at once, whatever Node still has to do before it exits. */
  leave(exitCode: number): void {
    try {
      writeSync(this.#descriptor, `leave\t${exitCode}\n`);
    } catch {
      // The guard has ended, so nobody waits for an exit code.
    }
    this.#socket.unref();
  }

  /** Fields contain one byte per character. */
  #say(...fields: string[]): void {
    this.#socket.write(Buffer.from(`${fields.map(escapeField).join("\t")}\n`, "latin1"));
  }

  #answer(...verbs: string[]): Promise<string[]> {
    return new Promise((resolve, reject) => {
      if (this.#socket.destroyed) {
        reject(internalError(new Error("tidemark-guard has ended")));
        return;
      }
      this.#waiting.push({ verbs, resolve });
      this.#socket.once("close", () =>
        reject(internalError(new Error("tidemark-guard has ended"))),
      );
    });
  }

  #hear(text: string): void {
    this.#received += text;
    const lines = this.#received.split("\n");
    this.#received = lines.pop() as string;
    for (const line of lines) {
      const fields = line.split("\t").map(unescapeField);
      if (fields[0] === "exited") {
        this.#reportExit(parseExit(fields));
        continue;
      }
      const index = this.#waiting.findIndex(({ verbs }) => verbs.includes(fields[0] as string));
      this.#waiting.splice(index, index < 0 ? 0 : 1)[0]?.resolve(fields);
    }
  }

  #close(): void {
    this.#reportExit(null);
  }
}

/** `exited STATUS MAXRSS_KB USER_MS SYS_MS ENDED_MS`; STATUS as in wait(2), ENDED_MS by the monotonic clock. */
function parseExit(fields: readonly string[]): ExitReport {
  const status = Number(fields[1]);
  const signal = status & 0x7f;
  return {
    exitCode: signal === 0 ? (status >> 8) & 0xff : null,
    signal: signal === 0 ? null : signal,
    maxRssBytes: Number(fields[2]) * 1024,
    userMs: Number(fields[3]),
    systemMs: Number(fields[4]),
    endedMs: timeAt(Number(fields[5])),
  };
}

/** UTF-8 as one byte per character. */
function bytesOf(text: string): string {
  return Buffer.from(text).toString("latin1");
}

function escapeField(field: string): string {
  return field.replace(/[\\\t\n]/g, (character) =>
    character === "\t" ? "\\t" : character === "\n" ? "\\n" : "\\\\",
  );
}

function unescapeField(field: string): string {
  return field.replace(/\\(.)/g, (_, character: string) =>
    character === "t" ? "\t" : character === "n" ? "\n" : character,
  );
}
