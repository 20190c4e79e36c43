/** `tidemark heap PID -o F.html` and `tidemark heap diff A B -o F.html`. */
import type { WrittenJson } from "../../model/documents.js";
import type { HeapDiffPageDocument, HeapPageDocument } from "../../model/heap_page.js";
import type { CommonOptions } from "../options.js";
import { formatBytes, printJson, screenOf } from "../output.js";
import { withProgress } from "../progress.js";
import { sizeOfFile } from "../recordings.js";
import { writeReport } from "../report_page.js";
import { writeWhole } from "../write_whole.js";

/** Writes a page and says where it is. Throws TM-E004, TM-E012. */
export async function writeHeapPage(
  document: HeapPageDocument | HeapDiffPageDocument,
  output: string,
  options: CommonOptions,
): Promise<void> {
  await writeWhole(output, (file) =>
    withProgress(output, "MiB", options, (tell) => writeReport(document, file, tell)),
  );
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
