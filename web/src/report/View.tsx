/** The view of the selected tab and its sites. */
import { useCallback, useMemo } from "react";
import type { ReportDocument } from "../../../src/model/documents/report_document.js";
import type { ProfileSnapshot } from "../../../src/model/profile/profile.js";
import { selectSites } from "../../../src/model/profile/row_filter.js";
import type { Choices, Choose } from "../choices/choices.js";
import { DiagnosisPanel } from "../diagnosis/DiagnosisPanel.js";
import { FlamePanel } from "../flame/FlamePanel.js";
import { SourcePanel } from "../lines/SourcePanel.js";
import { AgesTable } from "../sites/AgesTable.js";
import { LifetimesTable } from "../sites/LifetimesTable.js";
import { ProcessesTable } from "../sites/ProcessesTable.js";
import { SitesTable } from "../sites/SitesTable.js";
import type { Theme } from "../theme/theme.js";

/** The part of a report that the choices select. */
interface SelectedProfile {
  readonly report: ReportDocument;
  /** null if the report has no snapshots. */
  readonly snapshot: ProfileSnapshot | null;
  /** The snapshot it is compared with; null without a comparison. */
  readonly base: ProfileSnapshot | null;
  /** Rows of the snapshot's sites that pass the filter. */
  readonly rows: Uint32Array;
  readonly baseRows: Uint32Array | null;
}

export function useProfile(report: ReportDocument, choices: Choices): SelectedProfile {
  const { tables, snapshots } = report;
  const snapshot = snapshots[choices.at] ?? null;
  const base = choices.base === null ? null : (snapshots[choices.base] ?? null);
  const rows = useMemo(
    () => (snapshot ? selectSites(tables, snapshot.sites, choices.filter) : new Uint32Array(0)),
    [tables, snapshot, choices.filter],
  );
  const baseRows = useMemo(
    () => (base ? selectSites(tables, base.sites, choices.filter) : null),
    [tables, base, choices.filter],
  );
  return { report, snapshot, base, rows, baseRows };
}

interface ViewProps extends SelectedProfile {
  choices: Choices;
  choose: Choose;
  theme: Theme;
}

export function View(props: ViewProps) {
  const { report, snapshot, rows, choices, choose } = props;
  const searchFor = useCallback((text: string) => choose({ search: text, tab: "flame" }), [choose]);
  const shared = { report, snapshot, rows, search: choices.search, searchFor };
  return (
    <div
      className="view"
      role="tabpanel"
      id={`view-${choices.tab}`}
      aria-labelledby={`tab-${choices.tab}`}
    >
      {choices.tab === "flame" && <FlamePanel {...props} />}
      {choices.tab === "sites" && <SitesTable {...shared} />}
      {choices.tab === "ages" && <AgesTable {...shared} />}
      {choices.tab === "lifetimes" && <LifetimesTable {...shared} />}
      {choices.tab === "processes" && <ProcessesTable report={report} search={choices.search} />}
      {choices.tab === "source" && <SourcePanel {...props} />}
      {choices.tab === "diagnosis" && report.diagnosis && (
        <DiagnosisPanel page={report.diagnosis} />
      )}
    </div>
  );
}
