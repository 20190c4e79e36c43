/** `tidemark heap PID -o F.html` and `tidemark heap diff A B -o F.html`. */
import type { HeapDiffPageDocument, HeapPageDocument } from "../../model/documents/heap_page.js";
import { ownKind, type Replacing } from "../files/own_files.js";
import { writeReport } from "../files/report_page.js";
import { writeWhole } from "../files/write_whole.js";
import { sayWritten } from "../files/written_files.js";
import type { CommonOptions } from "../options/options.js";
import { withProgress } from "../text/progress.js";

/** What a page may replace: checked before a process is paused for it, too. */
export function pageReplacing({ force }: { readonly force?: boolean }): Replacing {
  return { force, isOwn: ownKind("page") };
}

/** Writes a page and says where it is. Throws TM-E004, TM-E012. */
export async function writeHeapPage(
  document: HeapPageDocument | HeapDiffPageDocument,
  output: string,
  options: CommonOptions & { readonly force?: boolean },
): Promise<void> {
  await writeWhole(output, pageReplacing(options), (file) =>
    withProgress(output, "MiB", options, (tell) => writeReport(document, file, tell)),
  );
  sayWritten("html", [output], options);
}
