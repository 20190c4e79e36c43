/** `tidemark gpu SNAPSHOT -o F.html`. */
import { basename } from "node:path";
import { pageDocument } from "../../gpu/page_document.js";
import type { WrittenJson } from "../../model/documents.js";
import type { CommonOptions } from "../options.js";
import { formatBytes, printJson, screenOf } from "../output.js";
import { withProgress } from "../progress.js";
import { sizeOfFile } from "../recordings.js";
import { writeReport } from "../report_page.js";
import { requireOtherFile, writeWhole } from "../write_whole.js";
import { loadSnapshot } from "./gpu_load.js";

export async function writeGpuPage(
  path: string,
  output: string,
  options: CommonOptions,
): Promise<void> {
  requireOtherFile(output, path);
  await writeWhole(output, async (file) => {
    const document = pageDocument(await loadSnapshot(path, options), path, basename(path));
    await withProgress(output, "MiB", options, (tell) => writeReport(document, file, tell));
  });
  const bytes = sizeOfFile(output);
  const written: WrittenJson = {
    schema: "tidemark.written/1",
    format: "html",
    files: [{ file: output, bytes }],
  };
  if (options.json === true) {
    printJson(written);
  } else if (options.quiet !== true) {
    const screen = screenOf(process.stdout);
    screen.line(`${output} ${screen.paint.dim(`(${formatBytes(bytes)})`)}`);
  }
}
