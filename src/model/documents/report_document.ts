/** Data of a report page, written by the CLI into one HTML file. */

import type { ProfileSnapshot, ProfileTables } from "../profile/profile.js";
import type { MemorySeries, TimelineEvent } from "../profile/series.js";
import type { DiagnosisPage } from "./diagnosis_page.js";
import type { SummaryJson } from "./summary_document.js";

/** The text of a source file of the program. */
export interface ReportSource {
  /** As in the frames of the tables. */
  readonly file: string;
  readonly text: string;
  /** It was written after the recording began, so its lines may differ from those that ran. */
  readonly changed: boolean;
}

/** `tidemark.report/1`. Encoded with {@link ./columns.ts} so that typed arrays stay typed arrays. */
export interface ReportDocument {
  readonly schema: "tidemark.report/1";
  /** Name of the recording. */
  readonly title: string;
  readonly summary: SummaryJson;
  readonly series: readonly MemorySeries[];
  readonly events: readonly TimelineEvent[];
  readonly tables: ProfileTables;
  /** Ascending by time; the last is the end. */
  readonly snapshots: readonly ProfileSnapshot[];
  /** The verdict of `tidemark diagnose` on the recording; absent if none was requested. */
  readonly diagnosis?: DiagnosisPage;
  /** The program's own files that allocate most, largest first; absent without source text. */
  readonly sources?: readonly ReportSource[];
}
