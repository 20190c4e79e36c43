import { promisify } from "node:util";
import { gzip } from "node:zlib";
import type { Context } from "hono";
import { encodeColumns } from "../../model/documents/columns.js";

const zipped = promisify(gzip);

/** Typed arrays in the encoding of src/model/documents/columns.ts. */
export async function columns(context: Context, document: object): Promise<Response> {
  const plain = encodeColumns(document);
  const accepts = /\bgzip\b/.test(context.req.header("accept-encoding") ?? "");
  const bytes = accepts ? await zipped(plain, { level: 1 }) : plain;
  return context.body(new Uint8Array(bytes), 200, {
    "content-type": "application/vnd.tidemark.columns",
    ...(accepts ? { "content-encoding": "gzip" } : {}),
  });
}
