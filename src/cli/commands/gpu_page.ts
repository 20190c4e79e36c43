/** `tidemark gpu SNAPSHOT -o F.html`, and of two snapshots what differs. */
import { basename } from "node:path";
import { diffPageDocument, pageDocument } from "../../gpu/page_document.js";
import { loadSnapshot } from "../../inspect/recorded/snapshot_file.js";
import type { GpuPageDocument } from "../../model/gpu_page.js";
import { writeReport } from "../files/report_page.js";
import { requireOtherFile, writeWhole } from "../files/write_whole.js";
import { sayWritten } from "../files/written_files.js";
import type { CommonOptions } from "../options/options.js";
import { withProgress } from "../text/progress.js";

/** @param paths one snapshot, or two: a before and an after */
export async function writeGpuPage(
  paths: readonly string[],
  output: string,
  options: CommonOptions,
): Promise<void> {
  for (const path of paths) requireOtherFile(output, path);
  await writeWhole(output, async (file) => {
    // One after the other: what a page needs of a snapshot is far less than the snapshot.
    const pages: GpuPageDocument[] = [];
    for (const path of paths) {
      pages.push(pageDocument(await loadSnapshot(path, options), path, basename(path)));
    }
    const [a, b] = pages as [GpuPageDocument, GpuPageDocument?];
    const document = b === undefined ? a : diffPageDocument(a, b);
    await withProgress(output, "MiB", options, (tell) => writeReport(document, file, tell));
  });
  sayWritten("html", [output], options);
}
