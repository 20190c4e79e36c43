import type { DiagnosisJson } from "../../model/documents/diagnosis_document.js";
import type { SummarySiteJson } from "../../model/documents/documents.js";
import type { SummaryJson } from "../../model/documents/summary_document.js";
import { type ListOptions, selectRows } from "./options.js";

/** The sites of a JSON document that match `--top`, `--min` and `--filter`; all if none is given. */
export function selectSites(
  sites: readonly SummarySiteJson[],
  options: ListOptions,
): SummarySiteJson[] {
  return selectRows(
    sites,
    options,
    0,
    (site) => site.liveBytes,
    (site) => site.stack.map((frame) => `${frame.function} ${frame.file}:${frame.line}`).join(" "),
  ).rows;
}

/** The summary as a JSON document, with the verdict if there is a diagnosis. */
export function summaryWithVerdict(
  document: SummaryJson,
  diagnosis: DiagnosisJson | null,
  options: ListOptions,
): SummaryJson {
  const suspect = diagnosis?.suspects[0];
  return {
    ...document,
    sites: selectSites(document.sites, options),
    verdict: diagnosis && {
      ...diagnosis.verdict,
      ...(suspect && { suspect }),
      ...(diagnosis.alsoFound && { alsoFound: diagnosis.alsoFound }),
    },
  };
}
