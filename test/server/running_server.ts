/** A real `tidemark serve`, for the tests of the server. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { present } from "../../src/model/base/present.js";
import { FRAMES_PATH, type FramesAnswer } from "../../src/model/wire/frames.js";
import { streamName } from "../../src/recording/sender/stream_name.js";
import { plainEnvironment, tidemark } from "../run.js";

export interface RunningServer {
  readonly url: string;
  readonly child: ChildProcess;
  /** Its stderr so far. */
  readonly said: () => string;
  /** Stops it as a supervisor would; resolves with its exit code. */
  stop(): Promise<number | null>;
  kill(): Promise<void>;
}

/** Starts a server on a folder (null: from its configuration); resolves once it listens.
 * `options`: of `tidemark serve`. */
export async function startServer(
  folder: string | null,
  {
    options = [],
    listen = "127.0.0.1:0",
    cwd = "/tmp",
    env = {},
  }: {
    options?: readonly string[];
    listen?: string;
    cwd?: string;
    env?: Readonly<Record<string, string>>;
  } = {},
): Promise<RunningServer> {
  const store = folder === null ? [] : ["--store", `duckdb:${folder}`];
  return startServing(["serve", "--listen", listen, ...store, ...options], { cwd, env });
}

/** The same for any command that serves; `words`: of its command line. */
export async function startServing(
  words: readonly string[],
  { cwd, env }: { readonly cwd: string; readonly env: Readonly<Record<string, string>> },
): Promise<RunningServer> {
  const child = spawn(tidemark, [...words, "--json"], {
    env: { ...plainEnvironment("/tmp"), ...env },
    cwd,
    stdio: ["ignore", "pipe", "pipe"],
  });
  let said = "";
  let printed = "";
  child.stderr?.on("data", (chunk: Buffer) => {
    said += chunk.toString();
  });
  const ended = once(child, "exit");
  const closed = once(child, "close");
  const url = await new Promise<string>((resolve, reject) => {
    child.stdout?.on("data", (chunk: Buffer) => {
      printed += chunk.toString();
      if (printed.includes("}")) {
        resolve((JSON.parse(printed) as { url: string }).url);
      }
    });
    // Not "exit": its last words may still be in the pipe then.
    child.once("close", (status) => reject(new Error(`the server ended with ${status}: ${said}`)));
  });
  return {
    url,
    child,
    said: () => said,
    stop: async () => {
      child.kill("SIGTERM");
      await closed; // its last words have been read
      return child.exitCode;
    },
    kill: async () => {
      child.kill("SIGKILL");
      await ended;
    },
  };
}

/** The answer of a server, its body parsed. */
export async function ask(
  url: string,
  init: RequestInit = {},
): Promise<{ status: number; body: unknown; headers: Headers }> {
  const response = await fetch(url, init);
  const text = await response.text();
  let body: unknown = text;
  try {
    body = JSON.parse(text);
  } catch {
    // a page
  }
  return { status: response.status, body, headers: response.headers };
}

/** Posts bytes of a stream from an offset on. */
export async function post(
  url: string,
  bytes: Buffer,
  { offset = 0, stream = streamName(bytes), headers = {} } = {},
): Promise<{ status: number; answer: FramesAnswer }> {
  const { status, body } = await ask(`${url}${FRAMES_PATH}?stream=${stream}&offset=${offset}`, {
    method: "POST",
    headers: { "content-type": "application/octet-stream", ...headers },
    body: new Uint8Array(bytes),
  });
  return { status, answer: present(body) as FramesAnswer };
}
