import type { SummarySiteJson } from "../../model/documents/documents.js";
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
