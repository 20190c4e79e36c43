/**
 * How `tidemark serve --backup` reaches the server that uses a folder: a socket in that folder, which only its user (and
 * root) can open. No address and no token are needed, and no other user can make the server write files.
 */
import { rmSync } from "node:fs";
import { createServer, type IncomingMessage, request, type ServerResponse } from "node:http";
import { join } from "node:path";
import type { Millis } from "../model/base/units.js";
import { fileUnusable, TidemarkError } from "../model/errors/errors.js";
import { reasonOf } from "../model/errors/reason.js";
import type { BackupOutcome } from "../store/index.js";

const SOCKET = "control.sock";
/** A folder name of a request. */
const MOST_BYTES = 8192;
/** Linux' limit on a socket's path. */
const LONGEST_PATH = 107;
/** Long enough to copy a very large store on a slow disk. */
const PATIENCE_MS: Millis = 6 * 3_600_000;

type Answer = { readonly outcome: BackupOutcome } | { readonly error: TidemarkErrorParts };
type TidemarkErrorParts = ConstructorParameters<typeof TidemarkError>;

/** Accepts requests for a backup from now on. `backUp` may throw TidemarkError. @returns a function that ends this, once
 * the backup that is being written is complete and answered. */
export async function takeBackupRequests(
  folder: string,
  backUp: (target: string) => Promise<BackupOutcome>,
  warn: (text: string) => void,
): Promise<() => Promise<void>> {
  const path = join(folder, SOCKET);
  // The store is locked by this process, so an existing socket was left by a server that was killed.
  rmSync(path, { force: true });
  let running: Promise<unknown> = Promise.resolve();
  const answering = new Set<Promise<void>>();
  const server = createServer((incoming, outgoing) => {
    const answered = answerRequest(incoming, outgoing).finally(() => answering.delete(answered));
    answering.add(answered);
  });
  const answerRequest = async (incoming: IncomingMessage, outgoing: ServerResponse) => {
    let answer: Answer;
    try {
      const chunks: Buffer[] = [];
      for await (const chunk of incoming as AsyncIterable<Buffer>) {
        if (chunks.push(chunk) > MOST_BYTES) {
          throw new Error("the request is too long");
        }
      }
      const target = Buffer.concat(chunks).toString();
      const outcome = running.then(() => backUp(target));
      running = outcome.catch(() => {});
      answer = { outcome: await outcome };
    } catch (error) {
      const own =
        error instanceof TidemarkError
          ? error
          : fileUnusable(folder, "read", reasonOf(error).message);
      answer = { error: [own.id, own.exitCode, own.what, own.why, own.next] };
    }
    await new Promise<void>((resolve) => {
      outgoing.once("close", resolve);
      outgoing.end(JSON.stringify(answer));
    });
  };
  const umask = process.umask(0o177);
  try {
    await new Promise<void>((resolve, reject) => {
      server.once("error", reject);
      server.listen(path, resolve);
    });
  } catch (error) {
    const why = path.length > LONGEST_PATH ? "its path is too long" : reasonOf(error).message;
    warn(`no backup can be made while this server runs: ${path}: ${why}`);
  } finally {
    process.umask(umask);
  }
  return async () => {
    const ended = new Promise<void>((resolve) => server.close(() => resolve()));
    await Promise.all(answering);
    server.closeAllConnections();
    await ended;
  };
}

/** Makes the server that uses `folder` write a backup. null if no server runs there. Throws TidemarkError. */
export function requestBackup(folder: string, target: string): Promise<BackupOutcome | null> {
  return new Promise((resolve, reject) => {
    const socketPath = join(folder, SOCKET);
    const failed = (error: NodeJS.ErrnoException) => {
      if (error.code === "ENOENT" || error.code === "ECONNREFUSED") {
        resolve(null);
      } else {
        reject(fileUnusable(socketPath, "read", error.message));
      }
    };
    const asked = request({ socketPath, method: "POST", path: "/backup" }, async (incoming) => {
      try {
        const chunks: Buffer[] = [];
        for await (const chunk of incoming as AsyncIterable<Buffer>) {
          chunks.push(chunk);
        }
        const answer = JSON.parse(Buffer.concat(chunks).toString()) as Answer;
        if ("outcome" in answer) {
          resolve(answer.outcome);
        } else {
          reject(new TidemarkError(...answer.error));
        }
      } catch (error) {
        failed(reasonOf(error) as NodeJS.ErrnoException);
      }
    });
    asked.setTimeout(PATIENCE_MS, () => asked.destroy());
    asked.once("error", failed);
    asked.end(target);
  });
}
