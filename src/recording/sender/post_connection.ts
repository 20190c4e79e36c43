import { Agent as HttpAgent, type RequestOptions, request as requestHttp } from "node:http";
import { Agent as HttpsAgent, request as requestHttps } from "node:https";
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

/** Posts bytes to one server over one connection. */
export class PostConnection {
  readonly #destination: Destination;
  readonly #agent: HttpAgent;
  readonly #isSecure: boolean;

  constructor(destination: Destination) {
    this.#destination = destination;
    this.#isSecure = destination.url.startsWith("https:");
    const settings = { keepAlive: true, maxSockets: 1 };
    this.#agent = this.#isSecure ? new HttpsAgent(settings) : new HttpAgent(settings);
  }

  /** Never throws. The body may arrive twice: if the connection had been closed, it is sent again over a new one. */
  async post(path: string, body: Buffer, patienceMs: Millis): Promise<Answer> {
    const answer = await this.#post(path, body, patienceMs);
    return "silence" in answer && answer.wasClosed ? this.#post(path, body, patienceMs) : answer;
  }

  #post(path: string, body: Buffer, patienceMs: Millis): Promise<Answer> {
    const { url, token } = this.#destination;
    const options: RequestOptions = {
      method: "POST",
      agent: this.#agent,
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
        const start = this.#isSecure ? requestHttps : requestHttp;
        const sent = start(`${url.replace(/\/+$/, "")}${path}`, options, (response) => {
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
    this.#agent.destroy();
  }
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
