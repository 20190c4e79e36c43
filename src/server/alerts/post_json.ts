/**
 * Requests of the server to addresses in its configuration. A name is resolved for the connection itself and each of its
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

/** Loopback, link-local (cloud metadata among it), private and unspecified addresses (RFC 6890). */
const LOCAL = new BlockList();
for (const [address, prefix] of [
  ["0.0.0.0", 8],
  ["10.0.0.0", 8],
  ["100.64.0.0", 10],
  ["127.0.0.0", 8],
  ["169.254.0.0", 16],
  ["172.16.0.0", 12],
  ["192.168.0.0", 16],
] as const) {
  LOCAL.addSubnet(address, prefix, "ipv4");
}
for (const [address, prefix] of [
  ["::", 128],
  ["::1", 128],
  ["fc00::", 7],
  ["fe80::", 10],
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

/** Throws an Error whose message is one line: no answer, a refusal, an address that is not allowed. */
export function postJson(
  url: string,
  body: object,
  { token, allowsLocal }: { readonly token: string; readonly allowsLocal: boolean },
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
        signal: AbortSignal.timeout(PATIENCE_MS),
        headers: {
          "content-type": "application/json",
          "content-length": Buffer.byteLength(text),
          "user-agent": "tidemark",
          ...(token === "" ? {} : { authorization: `Bearer ${token}` }),
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
            const said = answer.replace(/\s+/g, " ").trim().slice(0, 200);
            reject(new Error(`it answers ${status}${said === "" ? "" : `: ${said}`}`));
          }
        });
      },
    );
    outgoing.once("error", (error) => {
      reject(
        error.name === "AbortError" || error.name === "TimeoutError"
          ? new Error(`no answer within ${PATIENCE_MS / 1000} s`)
          : error,
      );
    });
    outgoing.end(text);
  });
}
