/**
 * One HTML file that opens from disk: the built app with a document inside.
 *
 *   <script type="application/octet-stream" id="tidemark-document">BASE64</script>
 *   BASE64 = base64(zlib(encodeColumns(ReportDocument)))
 *
 * zlib's checksum lets the page detect lost bytes.
 */

import { createWriteStream } from "node:fs";
import { readFile } from "node:fs/promises";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { createDeflate } from "node:zlib";
import { GPU_PAGE_PATH, PAGE_PATH, PLAN_PAGE_PATH } from "../../linux/installation.js";
import type { OnProgress } from "../../model/base/units.js";
import { encodeColumns } from "../../model/documents/columns.js";
import { GPU_DIFF_PAGE_SCHEMA, GPU_PAGE_SCHEMA } from "../../model/documents/gpu/gpu_page.js";
import { fileUnusable, notInstalled } from "../../model/errors/errors.js";
import { PLAN_PAGE_SCHEMA } from "../../plan/page_document.js";

const PLACE = "<!--tidemark:document-->";
const MIB = 1024 ** 2;
/** By schema; all others have that of reports. */
const TEMPLATES: Readonly<Record<string, string>> = {
  [PLAN_PAGE_SCHEMA]: PLAN_PAGE_PATH,
  [GPU_PAGE_SCHEMA]: GPU_PAGE_PATH,
  [GPU_DIFF_PAGE_SCHEMA]: GPU_PAGE_PATH,
};

/** Writes the page of `document` to `path`, replacing an existing file. `onProgress` reports progress in MiB of the document.
 * @throws TidemarkError TM-E012 if the app was not built, TM-E004 if `path` cannot be written. */
export async function writeReport(
  document: { readonly title: string; readonly schema: string },
  path: string,
  onProgress: OnProgress,
  templatePath: string = TEMPLATES[document.schema] ?? PAGE_PATH,
): Promise<void> {
  const template = await readFile(templatePath, "utf8").catch(() => "");
  const at = template.indexOf(PLACE);
  if (at < 0) {
    throw notInstalled("the report page's template is missing");
  }
  const head = template
    .slice(0, at)
    .replace(
      "<title>Tidemark</title>",
      () => `<title>${escaped(document.title)} - Tidemark</title>`,
    );
  try {
    await pipeline(
      Readable.from(slices(encodeColumns(document), onProgress), { objectMode: false }),
      createDeflate({ chunkSize: MIB / 4 }),
      async function* (compressed: AsyncIterable<Buffer>) {
        yield `${head}<script type="application/octet-stream" id="tidemark-document">`;
        yield* base64(compressed);
        yield `</script>${template.slice(at + PLACE.length)}`;
      },
      createWriteStream(path),
    );
  } catch (error) {
    throw fileUnusable(path, "write", error instanceof Error ? error.message : String(error));
  }
}

async function* slices(bytes: Uint8Array, onProgress: OnProgress): AsyncGenerator<Uint8Array> {
  const count = Math.ceil(bytes.length / MIB);
  for (let done = 0; done < count; done++) {
    await onProgress(done, count);
    yield bytes.subarray(done * MIB, (done + 1) * MIB);
  }
}

/** Base64 of all pieces together. Each is written up to a multiple of 3 bytes, so that no padding is needed. */
async function* base64(pieces: AsyncIterable<Buffer>): AsyncGenerator<string> {
  let rest: Buffer = Buffer.alloc(0);
  for await (const piece of pieces) {
    const bytes = Buffer.concat([rest, piece]);
    const end = bytes.length - (bytes.length % 3);
    yield bytes.toString("base64", 0, end);
    rest = bytes.subarray(end);
  }
  yield rest.toString("base64");
}

function escaped(text: string): string {
  return text.replace(/&/g, "&amp;").replace(/</g, "&lt;");
}
