/** What a report page holds: written by the CLI into one HTML file, later served live by the server. */

import type { ProfileLook, ProfileTables } from "../profile/profile.js";
import type { MemorySeries, TimelineEvent } from "../profile/series.js";
import type { DiagnosisPage } from "./diagnosis_page.js";
import type { SummaryJson } from "./documents.js";

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
  readonly looks: readonly ProfileLook[];
  /** What `tidemark diagnose` says of the recording; left out by who asks for no verdict. */
  readonly diagnosis?: DiagnosisPage;
}
