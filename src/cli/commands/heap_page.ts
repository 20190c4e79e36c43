/** `tidemark heap PID -o F.html` and `tidemark heap diff A B -o F.html`. */
import type { HeapDiffPageDocument, HeapPageDocument } from "../../model/documents/heap_page.js";
import { writeReport } from "../files/report_page.js";
import { writeWhole } from "../files/write_whole.js";
import { sayWritten } from "../files/written_files.js";
import type { CommonOptions } from "../options/options.js";
import { withProgress } from "../text/progress.js";

/** Writes a page and says where it is. Throws TM-E004, TM-E012. */
export async function writeHeapPage(
  document: HeapPageDocument | HeapDiffPageDocument,
  output: string,
  options: CommonOptions,
): Promise<void> {
  await writeWhole(output, (file) =>
    withProgress(output, "MiB", options, (tell) => writeReport(document, file, tell)),
  );
  sayWritten("html", [output], options);
}
