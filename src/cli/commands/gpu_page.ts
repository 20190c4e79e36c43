/** `tidemark gpu SNAPSHOT -o F.html`. */
import { basename } from "node:path";
import { pageDocument } from "../../gpu/page_document.js";
import type { CommonOptions } from "../options.js";
import { withProgress } from "../progress.js";
import { writeReport } from "../report_page.js";
import { requireOtherFile, writeWhole } from "../write_whole.js";
import { sayWritten } from "../written.js";
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
  sayWritten("html", [output], options);
}
