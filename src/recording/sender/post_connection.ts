import type { Agent, RequestOptions, request } from "node:http";
import type { Millis } from "../../model/base/units.js";
import { badUsage, oneLine } from "../../model/errors/errors.js";
import { reasonOf } from "../../model/errors/reason.js";

/** A server's address and token. */
export interface Destination {
  /** "http://127.0.0.1:7070": the server's address, perhaps with a path before its own. */
  readonly url: string;
  /** null: it requires none. */
  readonly token: string | null;
}

/** The answer: a status with the JSON of its body ({} if that is not JSON), or the reason why there is none. */
type Answer =
  | { readonly status: number; readonly body: object }
  | { readonly silence: string; readonly wasClosed?: true };

/** An answer is a line or two. */
const LONGEST_ANSWER = 64 << 10;
/** Codes of Node. */
const CLOSED: ReadonlySet<string> = new Set(["ECONNRESET", "EPIPE"]);

/** Node's own client, with one connection. */
interface Client {
  readonly agent: Agent;
  readonly request: typeof request;
}

/** Posts bytes to one server over one connection. */
export class PostConnection {
  readonly #destination: Destination;
  /** Loaded when it is first needed: every run would start 10 ms later. */
  #client: Promise<Client> | null = null;

  constructor(destination: Destination) {
    this.#destination = destination;
  }

  /** Never throws. The body may arrive twice: if the connection had been closed, it is sent again over a new one. */
  async post(path: string, body: Buffer, patienceMs: Millis): Promise<Answer> {
    const answer = await this.#post(path, body, patienceMs);
    return "silence" in answer && answer.wasClosed ? this.#post(path, body, patienceMs) : answer;
  }

  async #post(path: string, body: Buffer, patienceMs: Millis): Promise<Answer> {
    const { url, token } = this.#destination;
    this.#client ??= clientFor(url);
    const { agent, request } = await this.#client;
    const options: RequestOptions = {
      method: "POST",
      agent,
      headers: {
        "content-type": "application/octet-stream",
        "content-length": body.length,
        ...(token === null ? {} : { authorization: `Bearer ${token}` }),
      },
      signal: AbortSignal.timeout(patienceMs),
    };
    return new Promise((resolve) => {
      const silent = (error: Error) => resolve({ silence: silenceText(error) });
      try {
        const sent = request(`${url.replace(/\/+$/, "")}${path}`, options, (response) => {
          const chunks: Buffer[] = [];
          let length = 0;
          response.on("data", (chunk: Buffer) => {
            length += chunk.length;
            if (length <= LONGEST_ANSWER) {
              chunks.push(chunk);
            }
          });
          response.on("error", silent);
          response.on("end", () =>
            resolve({ status: response.statusCode ?? 0, body: jsonIn(Buffer.concat(chunks)) }),
          );
        });
        sent.on("error", (error) => {
          // A server may close an idle connection just when it is used again.
          const wasClosed = sent.reusedSocket && CLOSED.has(reasonOf(error).code);
          resolve({ silence: silenceText(error), ...(wasClosed && { wasClosed }) });
        });
        sent.end(body);
      } catch (error) {
        silent(error as Error);
      }
    });
  }

  close(): void {
    void this.#client?.then(({ agent }) => agent.destroy());
  }
}

async function clientFor(url: string): Promise<Client> {
  const { Agent, request } = await (url.startsWith("https:")
    ? import("node:https")
    : import("node:http"));
  return { agent: new Agent({ keepAlive: true, maxSockets: 1 }), request };
}

/** Throws TidemarkError if the text is not the address of a server. */
export function checkedUrl(text: string): string {
  const example = "give an address such as http://127.0.0.1:7070";
  let url: URL;
  try {
    url = new URL(text);
  } catch {
    throw badUsage(`${oneLine(text)} is not the address of a server`, example);
  }
  if (!/^https?:$/.test(url.protocol)) {
    throw badUsage(`${oneLine(text)} is not an http or https address`, example);
  }
  if (url.username !== "" || url.password !== "") {
    throw badUsage(
      "the address of the server holds a password, which others can see in the list of processes",
      "put the token in a file and name it with --token-file",
    );
  }
  if (url.search !== "" || url.hash !== "") {
    throw badUsage(`${oneLine(text)} has a query or a fragment`, example);
  }
  return url.href.replace(/\/+$/, "");
}

function jsonIn(bytes: Buffer): object {
  try {
    const value: unknown = JSON.parse(bytes.toString());
    return typeof value === "object" && value !== null ? value : {};
  } catch {
    return {};
  }
}

function silenceText(error: Error): string {
  const { code, message } = reasonOf(error);
  if (error.name === "TimeoutError" || error.name === "AbortError" || code === "ABORT_ERR") {
    return "it does not answer in time";
  }
  return code === "ECONNREFUSED" ? "nothing listens there" : oneLine(message);
}
