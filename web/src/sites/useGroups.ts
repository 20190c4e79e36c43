/** The groups of sites in the tables, with the names of their frames. */
import { useMemo } from "react";
import type { ReportDocument } from "../../../src/model/documents/report_document.js";
import type { ProfileSnapshot } from "../../../src/model/profile/profile.js";
import { groupSites, NO_FRAME, type SiteGroup } from "../../../src/model/profile/site_groups.js";
import { noSamples } from "../format/absent.js";
import { type FrameWords, frameWords, matcher } from "../frames/frameNames.js";

export interface SiteViewProps {
  report: ReportDocument;
  snapshot: ProfileSnapshot | null;
  /** Rows of the snapshot that pass the filter. */
  rows: Uint32Array;
  search: string;
  /** Shows a site in the flame graph. */
  searchFor: (text: string) => void;
}

export interface NamedGroup extends SiteGroup {
  readonly words: FrameWords;
}

const UNKNOWN: FrameWords = { function: "(no stack)", file: "", line: 0, kind: "mark", place: "" };

export function useGroups({ report, snapshot, rows, search }: SiteViewProps): NamedGroup[] {
  const groups = useMemo(
    () =>
      snapshot === null
        ? []
        : groupSites(report.tables, snapshot, rows).map((group) =>
            Object.assign(group, {
              words: group.frame === NO_FRAME ? UNKNOWN : frameWords(report.tables, group.frame),
            }),
          ),
    [report, snapshot, rows],
  );
  return useMemo(() => {
    const test = search === "" ? () => true : matcher(search);
    if (test === null) {
      return [];
    }
    return groups.filter(
      ({ words }) => test(words.function) || test(`${words.file}:${words.line}`),
    );
  }, [groups, search]);
}

/** The flame graph search that finds a group. */
export function placeOf({ words }: NamedGroup): string {
  return words.file === ""
    ? words.function
    : words.line > 0
      ? `${words.file}:${words.line}`
      : words.function;
}

export function emptyTable({ report, search, snapshot }: SiteViewProps): string {
  if (snapshot === null || snapshot.sites.length === 0) {
    return noSamples(report.summary.imported);
  }
  return search === "" ? "No sites pass these filters." : `No site matches “${search}”.`;
}
