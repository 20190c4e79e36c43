/** The routes of artifacts: collectors upload them; people list, open and download them. */
import { createReadStream } from "node:fs";
import { Readable } from "node:stream";
import type { ReadableStream as NodeStream } from "node:stream/web";
import type { Context, Hono, MiddlewareHandler } from "hono";
import type { ArtifactsJson } from "../../model/documents/artifact_document.js";
import { badUsage, nothingThere } from "../../model/errors/errors.js";
import {
  ARTIFACT_ABOUT,
  ARTIFACT_FILE_NAME,
  ARTIFACT_ID,
  MOST_ABOUT_BYTES,
} from "../../model/wire/artifacts.js";
import type { StreamFiles } from "../../store/index.js";
import { REFUSED, refusal } from "../answers/refusal.js";
import type { ArtifactFiles } from "../artifacts/artifact_files.js";
import { ARTIFACT_FILE, ARTIFACT_REPORT, ARTIFACTS, PUT_ARTIFACT } from "./collector_routes.js";
import { columns } from "./columns.js";
import { valuesIn } from "./parameters.js";

export interface ArtifactRoutes {
  readonly artifacts: ArtifactFiles;
  readonly recordings: Pick<StreamFiles, "list">;
  /** Lets through who may send. */
  readonly allowed: MiddlewareHandler;
  /** The report of a recording's file, as columns. Throws TidemarkError. */
  readonly report: (path: string, title: string) => Promise<object>;
  readonly changed: () => void;
}

const routed = (path: string) => path.replaceAll(/\{(\w+)\}/g, ":$1");

export function addArtifacts(
  app: Hono,
  { artifacts, recordings, allowed, report, changed }: ArtifactRoutes,
): void {
  app.get(ARTIFACTS.path, async (context) => {
    const { service } = valuesIn(context.req.url, ARTIFACTS.parameters);
    const all = artifacts.list();
    const { count, keepMs, mostBytes, mostArtifactBytes } = artifacts.limits;
    const streams = await recordings.list();
    return context.json({
      schema: "tidemark.artifacts/1",
      artifacts: all.filter((each) => service === undefined || each.service === service),
      bytes: artifacts.bytes,
      limits: { count, keepMs, bytes: mostBytes, artifactBytes: mostArtifactBytes },
      recordings: {
        streams: streams.length,
        bytes: streams.reduce((sum, { bytes }) => sum + bytes, 0),
      },
    } satisfies ArtifactsJson);
  });
  const found = (context: Context) => {
    const name = context.req.param("name") ?? "";
    const file = artifacts.fileOf(context.req.param("id") ?? "", name);
    if (file === null) {
      throw nothingThere("there is no such artifact", `list them: GET ${ARTIFACTS.path}`);
    }
    return { ...file, name };
  };
  app.get(routed(ARTIFACT_FILE.path), (context) => {
    const { path, bytes, name } = found(context);
    const headers = {
      "content-type": "application/octet-stream",
      "content-length": String(bytes),
      "content-disposition": `attachment; filename="${name}"`,
    };
    return context.req.method === "HEAD"
      ? context.body(null, 200, headers)
      : context.body(Readable.toWeb(createReadStream(path)) as ReadableStream, 200, headers);
  });
  app.get(routed(ARTIFACT_REPORT.path), async (context) => {
    const { path, name } = found(context);
    if (!name.endsWith(".tidemark")) {
      throw badUsage("only recordings have a report", "download the file");
    }
    return columns(context, await report(path, name));
  });
  app.put(routed(PUT_ARTIFACT.path), allowed, async (context) => {
    const { id, name } = context.req.param() as { id: string; name: string };
    if (!ARTIFACT_ID.test(id) || !ARTIFACT_FILE_NAME.test(name)) {
      throw badUsage(
        "the address is not of an artifact's file",
        "its form is /api/v1/artifacts/32-HEX-DIGITS/FILE-NAME",
      );
    }
    const type = context.req.header("content-type") ?? "";
    if (type !== "application/octet-stream" || context.req.header("content-encoding")) {
      return refusal(context, 415, "files are sent as application/octet-stream, not encoded");
    }
    const asked = valuesIn(context.req.url, PUT_ARTIFACT.parameters);
    if (name === ARTIFACT_ABOUT && asked.bytes > MOST_ABOUT_BYTES) {
      const limit = `${MOST_ABOUT_BYTES >> 20} MiB`;
      return refusal(context, 413, `${name} is too large: the limit about-bytes is ${limit}`);
    }
    const sent = context.req.raw.body;
    const body = sent === null ? Readable.from([]) : Readable.fromWeb(sent as NodeStream);
    const { status, answer } = await artifacts.take({ id, name, ...asked, body });
    if (status === 200 && name === ARTIFACT_ABOUT) {
      changed();
    }
    if (answer.error !== undefined && answer.nextOffset === undefined) {
      context.set(REFUSED as never, answer.error as never);
    }
    return context.json(answer, status);
  });
}
