/**
 * Requests to addresses that a configuration names. A name is resolved for the connection itself and each of its
 * addresses is checked then, so that a name which changes between a check and the request reaches nothing else. Redirects
 * are not followed.
 */
import { lookup } from "node:dns";
import { request as httpRequest } from "node:http";
import { request as httpsRequest } from "node:https";
import { BlockList, isIP, type LookupFunction } from "node:net";
import type { Millis } from "../../model/base/units.js";

const PATIENCE_MS: Millis = 10_000;
/** Of an answer, for its error. */
const MOST_BYTES = 2_000;

/** Loopback, link-local (cloud metadata among it), private, reserved and multicast addresses (RFC 6890). */
const LOCAL = new BlockList();
for (const [address, prefix] of [
  ["0.0.0.0", 8],
  ["10.0.0.0", 8],
  ["100.64.0.0", 10],
  ["127.0.0.0", 8],
  ["169.254.0.0", 16],
  ["172.16.0.0", 12],
  ["192.168.0.0", 16],
  ["198.18.0.0", 15],
  ["224.0.0.0", 3],
] as const) {
  LOCAL.addSubnet(address, prefix, "ipv4");
}
for (const [address, prefix] of [
  // Addresses that contain an IPv4 address: compatible ones, NAT64, 6to4.
  ["::", 96],
  ["64:ff9b::", 96],
  ["2002::", 16],
  ["fc00::", 7],
  ["fe80::", 9],
  ["ff00::", 8],
] as const) {
  LOCAL.addSubnet(address, prefix, "ipv6");
}

/** @internal */
export function isLocal(address: string): boolean {
  const [, mapped] = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(address) ?? [];
  const plain = mapped ?? address;
  return LOCAL.check(plain, isIP(plain) === 6 ? "ipv6" : "ipv4");
}

function localRefused(host: string, address: string): Error {
  return new Error(
    `${host === address ? host : `${host} (${address})`} is an address of this host or its local network; allow_local: true permits it`,
  );
}

/** An answer with another status than 2xx. */
export class ReceiverRefusal extends Error {
  /** Of this body, not of the sender or of everything now. */
  readonly isOfContent: boolean;

  constructor(status: number, said: string) {
    super(`it answers ${status}${said === "" ? "" : `: ${said}`}`);
    this.isOfContent = status >= 400 && status < 500 && ![401, 403, 404, 408, 429].includes(status);
  }
}

interface PostOptions {
  /** Never shown. */
  readonly secret: string;
  /** Whether the secret is sent as a bearer token. */
  readonly isBearer: boolean;
  readonly allowsLocal: boolean;
  readonly signal: AbortSignal;
}

/** Throws an Error whose message is one line: no answer, a refusal, an address that is not allowed. */
export function postJson(
  url: string,
  body: object,
  { secret, isBearer, allowsLocal, signal }: PostOptions,
): Promise<void> {
  const target = new URL(url);
  const host = target.hostname.replace(/^\[|\]$/g, "");
  const checked: LookupFunction = (name, options, done) => {
    lookup(name, { ...options, all: true }, (error, addresses) => {
      const local = allowsLocal ? undefined : addresses?.find(({ address }) => isLocal(address));
      const [first] = addresses ?? [];
      if (error !== null || local !== undefined || first === undefined) {
        done(error ?? localRefused(name, local?.address ?? "unknown"), "", 0);
      } else if (options.all === true) {
        done(null, addresses);
      } else {
        done(null, first.address, first.family);
      }
    });
  };
  return new Promise((resolve, reject) => {
    if (isIP(host) !== 0 && !allowsLocal && isLocal(host)) {
      reject(localRefused(host, host));
      return;
    }
    const text = JSON.stringify(body);
    const send = target.protocol === "https:" ? httpsRequest : httpRequest;
    const outgoing = send(
      target,
      {
        method: "POST",
        agent: false,
        lookup: checked,
        signal: AbortSignal.any([signal, AbortSignal.timeout(PATIENCE_MS)]),
        headers: {
          "content-type": "application/json",
          "content-length": Buffer.byteLength(text),
          "user-agent": "tidemark",
          ...(isBearer && secret !== "" ? { authorization: `Bearer ${secret}` } : {}),
        },
      },
      (incoming) => {
        let answer = "";
        incoming.setEncoding("utf8");
        incoming.on("data", (chunk: string) => {
          answer = (answer + chunk).slice(0, MOST_BYTES);
        });
        incoming.once("error", reject);
        incoming.once("end", () => {
          const status = incoming.statusCode ?? 0;
          if (status >= 200 && status < 300) {
            resolve();
          } else {
            const shown = secret === "" ? answer : answer.replaceAll(secret, "...");
            reject(new ReceiverRefusal(status, shown.replace(/\s+/g, " ").trim().slice(0, 200)));
          }
        });
      },
    );
    outgoing.once("error", (error) => {
      reject(
        error.name === "AbortError" || error.name === "TimeoutError"
          ? new Error("no answer in time")
          : error,
      );
    });
    outgoing.end(text);
  });
}
