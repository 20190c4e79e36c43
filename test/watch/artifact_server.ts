/** A server that takes artifacts as src/model/wire/artifacts.ts describes it, with errors that a test asks for. */
import { createHash } from "node:crypto";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import {
  ARTIFACT_ABOUT,
  ARTIFACT_FILE_NAME,
  ARTIFACTS_PATH,
} from "../../src/model/wire/artifacts.js";

interface Stored {
  readonly about: Record<string, unknown> | null;
  readonly files: Map<string, Buffer>;
}

export class ArtifactServer {
  /** By id. */
  readonly artifacts = new Map<string, { about: Buffer | null; files: Map<string, Buffer> }>();
  /** Bytes of a piece that are taken; the rest has to be sent again. */
  taken = Number.POSITIVE_INFINITY;
  /** Answers this instead, if not null. */
  refusal: { status: number; error: string } | null = null;
  /** Answers this to every body, as a proxy before it does. */
  proxy: { status: number; body: string } | null = null;
  /** Pieces that lose a byte on the way. */
  damaged = 0;
  /** Bytes of files that were received, also repeatedly. */
  received = 0;
  readonly tokens = new Set<string | undefined>();
  readonly #server = createServer((incoming, outgoing) => {
    const chunks: Buffer[] = [];
    incoming.on("data", (chunk: Buffer) => chunks.push(chunk));
    incoming.on("end", () => {
      const url = new URL(incoming.url ?? "", "http://x");
      let sent = Buffer.concat(chunks);
      if (sent.length > 0 && this.damaged > 0) {
        this.damaged -= 1;
        sent = Buffer.from(sent).fill("?", 0, 1);
      }
      const { status, body } = url.pathname.startsWith(`${ARTIFACTS_PATH}/`)
        ? this.#put(url, sent, incoming.headers)
        : { status: 404, body: { error: "no such route" } };
      if (this.proxy !== null) {
        outgoing.writeHead(this.proxy.status, { "content-type": "text/html" });
        outgoing.end(this.proxy.body);
        return;
      }
      outgoing.writeHead(status, { "content-type": "application/json" });
      outgoing.end(JSON.stringify(body));
    });
  });

  async listen(port = 0): Promise<string> {
    await new Promise<void>((resolve) => this.#server.listen(port, "127.0.0.1", resolve));
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  close(): Promise<void> {
    this.#server.closeAllConnections();
    return new Promise((resolve) => this.#server.close(() => resolve()));
  }

  complete(): Stored[] {
    return [...this.artifacts.values()].flatMap(({ about, files }) =>
      about === null ? [] : [{ about: JSON.parse(about.toString()), files }],
    );
  }

  #put(url: URL, body: Buffer, headers: Record<string, unknown>) {
    this.tokens.add(headers.authorization as string | undefined);
    const [, id = "", name = ""] =
      /^\/api\/v1\/artifacts\/([0-9a-f]{32})\/([^/]+)$/.exec(decodeURIComponent(url.pathname)) ??
      [];
    const wanted = url.searchParams.get("sha256");
    const total = Number(url.searchParams.get("bytes"));
    const offset = Number(url.searchParams.get("offset") ?? 0);
    const answer = (status: number, content: object) => ({ status, body: content });
    if (this.refusal !== null) {
      return answer(this.refusal.status, { error: this.refusal.error });
    }
    if (headers["content-type"] !== "application/octet-stream") {
      return answer(415, { error: "content type" });
    }
    if (id === "" || !ARTIFACT_FILE_NAME.test(name) || wanted === null) {
      return answer(400, { error: `bad address ${url}` });
    }
    const artifact = this.artifacts.get(id) ?? { about: null, files: new Map<string, Buffer>() };
    this.artifacts.set(id, artifact);
    if (name === ARTIFACT_ABOUT) {
      if (hashOf(body) !== wanted || !wanted.startsWith(id)) {
        return answer(400, { error: "another about.json" });
      }
      const { files } = JSON.parse(body.toString()) as { files: { name: string }[] };
      const missing = files.map((file) => file.name).filter((file) => !artifact.files.has(file));
      if (missing.length > 0) {
        return answer(409, { error: "files are missing", missing });
      }
      artifact.about = body;
      return answer(200, { nextOffset: total, complete: true });
    }
    const known = artifact.files.get(name) ?? Buffer.alloc(0);
    artifact.files.set(name, known);
    if (artifact.about !== null || (known.length === total && hashOf(known) === wanted)) {
      return answer(200, { nextOffset: total, complete: true });
    }
    if (body.length > 0 && offset !== known.length) {
      return answer(409, { error: "another offset", nextOffset: known.length });
    }
    this.received += body.length;
    const all = Buffer.concat([known, body.subarray(0, this.taken)]);
    artifact.files.set(name, all);
    if (all.length === total && hashOf(all) !== wanted) {
      artifact.files.delete(name);
      return answer(400, { error: "the SHA-256 differs" });
    }
    return answer(200, { nextOffset: all.length, complete: all.length === total });
  }
}

function hashOf(bytes: Buffer): string {
  return createHash("sha256").update(bytes).digest("hex");
}
