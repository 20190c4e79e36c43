import type { SummarySiteJson } from "../../model/documents/documents.js";
import { type ListOptions, selectRows } from "./options.js";

/** Sites of a JSON document that `--top`, `--min` and `--filter` leave; all of them without these. */
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
