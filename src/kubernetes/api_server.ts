/** Requests to the API server of the cluster that this process runs in. */
import { existsSync, readFileSync } from "node:fs";
import type { IncomingMessage } from "node:http";
import { request } from "node:https";
import { join } from "node:path";
import { z } from "zod";
import type { Bytes, Millis } from "../model/base/units.js";

export interface ApiServer {
  readonly host: string;
  readonly port: number;
  /** Holds `token`, which kubelet replaces before it expires, and `ca.crt`: both are read for each request. */
  readonly folder: string;
}

const ACCOUNT = "/var/run/secrets/kubernetes.io/serviceaccount";

/**
 * null outside a pod, and in a pod without a token. TIDEMARK_SERVICE_ACCOUNT names the folder of a token that is mounted
 * elsewhere.
 */
export function apiServerOf(
  environment: Readonly<Record<string, string | undefined>>,
): ApiServer | null {
  const { KUBERNETES_SERVICE_HOST: host = "", KUBERNETES_SERVICE_PORT: port = "443" } = environment;
  const folder = environment.TIDEMARK_SERVICE_ACCOUNT || ACCOUNT;
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

interface Patience {
  /** The connection ends if nothing arrives for so long. */
  readonly idleMs: Millis;
  readonly until: AbortSignal;
}

/** The body of a successful answer. Rejects with ApiError for any other answer, and with Error if there is none. */
export function get(server: ApiServer, path: string, patience: Patience): Promise<IncomingMessage> {
  return send(server, { method: "GET", path, body: "" }, patience);
}

/** The same for the creation of an object. */
export function post(
  server: ApiServer,
  { path, object }: { readonly path: string; readonly object: object },
  patience: Patience,
): Promise<IncomingMessage> {
  return send(server, { method: "POST", path, body: JSON.stringify(object) }, patience);
}

async function send(
  { host, port, folder }: ApiServer,
  { method, path, body }: { readonly method: string; readonly path: string; readonly body: string },
  { idleMs, until }: Patience,
): Promise<IncomingMessage> {
  const token = readFileSync(join(folder, "token"), "utf8").trim();
  const ca = readFileSync(join(folder, "ca.crt"));
  const response = await new Promise<IncomingMessage>((resolve, reject) => {
    const headers = {
      ...{ accept: "application/json", authorization: `Bearer ${token}` },
      ...(body === "" ? {} : { "content-type": "application/json" }),
    };
    const sent = request(
      // A connection of its own: a watch keeps it for minutes.
      { host, port, method, path, headers, ca, agent: false, signal: until, timeout: idleMs },
      resolve,
    );
    sent.on("timeout", () => sent.destroy(new Error(`no answer for ${idleMs / 1000} s`)));
    sent.on("error", reject);
    sent.end(body);
  });
  const { statusCode = 0 } = response;
  if (statusCode === 200 || statusCode === 201) {
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

const STATUS = z.object({
  message: z.string(),
  details: z
    .object({ causes: z.array(z.object({ message: z.string() })) })
    .optional()
    .catch(undefined),
});

/** `message` of a Status object, and those of its causes. */
function reasonIn(text: string): string {
  try {
    const { message, details } = STATUS.parse(JSON.parse(text));
    return [message, ...(details?.causes ?? []).map((cause) => cause.message)].join(" ");
  } catch {
    return "";
  }
}
