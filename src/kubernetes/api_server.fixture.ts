/** A server with a certificate that speaks the API server's protocol, and the folder of a ServiceAccount that trusts it. */
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import type { IncomingMessage, ServerResponse } from "node:http";
import { createServer } from "node:https";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import type { ApiServer } from "./api_server.js";

/** NAME.key and NAME.crt for 127.0.0.1. */
export function makeCertificate(folder: string, name: string): void {
  const files = ["-keyout", join(folder, `${name}.key`), "-out", join(folder, `${name}.crt`)];
  const key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"];
  const about = ["-days", "2", "-subj", "/CN=test", "-addext", "subjectAltName=IP:127.0.0.1"];
  execFileSync("openssl", ["req", "-x509", ...key, ...files, ...about], { stdio: "ignore" });
}

export interface TestApiServer extends ApiServer {
  close(): Promise<void>;
}

/** `folder`: with ca.key and ca.crt. */
export async function startApiServer(
  folder: string,
  answer: (request: IncomingMessage, response: ServerResponse) => void,
): Promise<TestApiServer> {
  const key = readFileSync(join(folder, "ca.key"));
  const cert = readFileSync(join(folder, "ca.crt"));
  const server = createServer({ key, cert }, answer);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  return {
    ...{ host: "127.0.0.1", port, folder },
    async close() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

/** A Status object, as the API server answers with. */
export function answerStatus(
  response: ServerResponse,
  code: number,
  {
    message = `no ${code}`,
    causes = [],
    headers = {},
  }: {
    message?: string;
    causes?: readonly string[];
    headers?: Readonly<Record<string, string>>;
  } = {},
): void {
  const details = { causes: causes.map((text) => ({ reason: "DisruptionBudget", message: text })) };
  const body = { kind: "Status", apiVersion: "v1", metadata: {}, code, message, details };
  response.writeHead(code, { "content-type": "application/json", ...headers });
  response.end(JSON.stringify(body));
}
