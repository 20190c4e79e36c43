/**
 * One HTML file that opens from disk: the built app with a document inside.
 *
 *   <script type="application/octet-stream" id="tidemark-document">BASE64</script>
 *   BASE64 = base64(zlib(encodeColumns(ReportDocument)))
 *
 * zlib's checksum tells the page when a byte was lost on the way.
 */
import { createWriteStream } from "node:fs";
import { readFile } from "node:fs/promises";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { deflate } from "node:zlib";
import { encodeColumns } from "../model/columns.js";
import { fileUnusable, notInstalled } from "../model/errors.js";
import type { ReportDocument } from "../model/report.js";

/** What the build left: the app as one file, with a place for the document. */
const TEMPLATE_PATH = fileURLToPath(new URL("../../dist/web/index.html", import.meta.url));
const PLACE = "<!--tidemark:document-->";
/** A multiple of 3, so that pieces of base64 join without padding. */
const PIECE_BYTES = 3 * 256 * 1024;

/** Writes the page of `document` to `path`, over what is there.
 * @throws TidemarkError TM-E012 when the app was not built, TM-E004 when `path` cannot be written. */
export async function writeReport(
  document: ReportDocument,
  path: string,
  templatePath: string = TEMPLATE_PATH,
): Promise<void> {
  const template = await readFile(templatePath, "utf8").catch(() => "");
  const at = template.indexOf(PLACE);
  if (at < 0) throw notInstalled("the report page's template is missing", "run: npm run build");
  const body = await promisify(deflate)(encodeColumns(document));
  const head = template
    .slice(0, at)
    .replace(
      "<title>Tidemark</title>",
      () => `<title>${escaped(document.title)} - Tidemark</title>`,
    );
  const pieces = function* () {
    yield `${head}<script type="application/octet-stream" id="tidemark-document">`;
    for (let from = 0; from < body.length; from += PIECE_BYTES) {
      yield body.subarray(from, from + PIECE_BYTES).toString("base64");
    }
    yield `</script>${template.slice(at + PLACE.length)}`;
  };
  try {
    await pipeline(Readable.from(pieces()), createWriteStream(path));
  } catch (error) {
    throw fileUnusable(path, "write", error instanceof Error ? error.message : String(error));
  }
}

function escaped(text: string): string {
  return text.replace(/&/g, "&amp;").replace(/</g, "&lt;");
}
