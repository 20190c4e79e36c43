/** Requests to the API server of the cluster that this process runs in. */
import { existsSync, readFileSync } from "node:fs";
import type { IncomingMessage } from "node:http";
import { request } from "node:https";
import { join } from "node:path";
import type { Bytes, Millis } from "../../model/base/units.js";

export interface ApiServer {
  readonly host: string;
  readonly port: number;
  /** Holds `token`, which kubelet replaces before it expires, and `ca.crt`: both are read for each request. */
  readonly folder: string;
}

const ACCOUNT = "/var/run/secrets/kubernetes.io/serviceaccount";

/** null outside a pod, and in a pod without a token. */
export function apiServerOf(
  environment: Readonly<Record<string, string | undefined>>,
  folder = ACCOUNT,
): ApiServer | null {
  const { KUBERNETES_SERVICE_HOST: host = "", KUBERNETES_SERVICE_PORT: port = "443" } = environment;
  return host === "" || !existsSync(join(folder, "token"))
    ? null
    : { host, port: Number(port), folder };
}

/** An answer that is no success; `status` 410: the version that was asked for is too old. */
export class ApiError extends Error {
  constructor(
    readonly status: number,
    message: string,
    /** The server asks to wait this long. */
    readonly retryAfterMs: Millis = 0,
  ) {
    super(message);
  }
}

const LONGEST_REASON: Bytes = 65_536;
/** Of a list, or a line of a watch. */
export const LARGEST_ANSWER: Bytes = 64 * 2 ** 20;

/**
 * The body of a successful answer. `idleMs`: the connection ends if nothing arrives for so long.
 * Rejects with ApiError for any other answer, and with Error if there is none.
 */
export async function get(
  { host, port, folder }: ApiServer,
  path: string,
  { idleMs, until }: { readonly idleMs: Millis; readonly until: AbortSignal },
): Promise<IncomingMessage> {
  const token = readFileSync(join(folder, "token"), "utf8").trim();
  const ca = readFileSync(join(folder, "ca.crt"));
  const response = await new Promise<IncomingMessage>((resolve, reject) => {
    const headers = { accept: "application/json", authorization: `Bearer ${token}` };
    const sent = request(
      // A connection of its own: a watch keeps it for minutes.
      { host, port, path, headers, ca, agent: false, signal: until, timeout: idleMs },
      resolve,
    );
    sent.on("timeout", () => sent.destroy(new Error(`no answer for ${idleMs / 1000} s`)));
    sent.on("error", reject);
    sent.end();
  });
  const { statusCode = 0 } = response;
  if (statusCode === 200) {
    return response;
  }
  const text = await readAll(response, LONGEST_REASON).catch(() => "");
  const seconds = Number(response.headers["retry-after"] ?? 0) || 0;
  throw new ApiError(statusCode, reasonIn(text), Math.min(seconds, 300) * 1000);
}

/** Rejects if it is longer. */
export async function readAll(response: IncomingMessage, most: Bytes): Promise<string> {
  const pieces: Buffer[] = [];
  let length = 0;
  for await (const piece of response as AsyncIterable<Buffer>) {
    length += piece.length;
    if (length > most) {
      response.destroy();
      throw new Error(`the answer is longer than ${most} bytes`);
    }
    pieces.push(piece);
  }
  return Buffer.concat(pieces).toString("utf8");
}

/** `message` of a Status object. */
function reasonIn(text: string): string {
  try {
    const { message } = JSON.parse(text) as { message?: unknown };
    return typeof message === "string" ? message : "";
  } catch {
    return "";
  }
}
