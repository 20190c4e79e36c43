/** `tidemark gpu SNAPSHOT -o F.html`, and the same with two snapshots. */
import { basename } from "node:path";
import { diffPageDocument, snapshotPage } from "../../inspect/index.js";
import type { GpuPageDocument } from "../../model/documents/gpu/gpu_page.js";
import { ownKind } from "../files/own_files.js";
import { writeReport } from "../files/report_page.js";
import { requireOtherFile, writeWhole } from "../files/write_whole.js";
import { sayWritten } from "../files/written_files.js";
import type { CommonOptions } from "../options/options.js";
import { withProgress } from "../text/progress.js";

/** @param paths one snapshot, or two: a before and an after */
export async function writeGpuPage(
  paths: readonly string[],
  output: string,
  options: CommonOptions & { readonly force?: boolean },
): Promise<void> {
  for (const path of paths) {
    requireOtherFile(output, path);
  }
  await writeWhole(output, { force: options.force, isOwn: ownKind("page") }, async (file) => {
    // Sequential, because a page needs far less memory than its snapshot.
    const pages: GpuPageDocument[] = [];
    for (const path of paths) {
      pages.push(
        await withProgress(basename(path), "MiB", options, (onProgress) =>
          snapshotPage(path, onProgress),
        ),
      );
    }
    const [a, b] = pages as [GpuPageDocument, GpuPageDocument?];
    const document = b === undefined ? a : diffPageDocument(a, b);
    await withProgress(output, "MiB", options, (onProgress) =>
      writeReport(document, file, onProgress),
    );
  });
  sayWritten("html", [output], options);
}
