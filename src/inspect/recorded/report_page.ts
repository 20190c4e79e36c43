/** A recording as the document of its page: `tidemark report`. */

import type { Tell } from "../../model/base/units.js";
import type { ReportDocument } from "../../model/documents/report_document.js";
import type { Recording } from "../../recording/types.js";
import { diagnoseRecording } from "./diagnosis.js";
import { diagnosisPage } from "./diagnosis_page.js";
import { buildReport } from "./report.js";

/** The report with its verdict. `tell` counts looks, twice: they are read for the report and for the verdict.
 * Throws TidemarkError where one turns out damaged. */
export async function reportDocument(recording: Recording, tell: Tell): Promise<ReportDocument> {
  const report = await buildReport(recording, tell);
  await tell(0, recording.looks.length);
  const diagnosis = await diagnoseRecording(recording, tell);
  return { ...report, diagnosis: diagnosisPage(diagnosis) };
}
