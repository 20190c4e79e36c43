import { useCallback, useMemo, useRef, useState } from "react";
import type { ReportDocument } from "../../../src/model/documents/report_document.js";
import { precisionText } from "../../../src/model/profile/imported.js";
import { conditionOn } from "../../../src/model/profile/row_filter.js";
import { type Choices, firstChoices, tabsOf } from "../choices/choices.js";
import { formatUtcTime } from "../format/numbers.js";
import { LedgerChart } from "../ledger/LedgerChart.js";
import { useTheme } from "../theme/theme.js";
import { Timeline } from "../timeline/Timeline.js";
import { informativeSnapshot, nearestSnapshot } from "../timeline/timelineData.js";
import { Headline } from "./Headline.js";
import { Help } from "./Help.js";
import { TabList } from "./TabList.js";
import { Toolbar } from "./Toolbar.js";
import { useKeys } from "./useKeys.js";
import { useProfile, View } from "./View.js";

export function ReportApp({ report }: { report: ReportDocument }) {
  const { snapshots, summary } = report;
  const [theme, toggleTheme] = useTheme();
  const [choices, setChoices] = useState<Choices>(() =>
    firstChoices(Math.max(informativeSnapshot(snapshots), 0), summary.imported),
  );
  const [helping, setHelping] = useState(false);
  const tabs = useMemo(() => tabsOf(report), [report]);
  const searchField = useRef<HTMLInputElement>(null);
  const choose = useCallback(
    (change: Partial<Choices>) => setChoices((now) => ({ ...now, ...change })),
    [],
  );
  const turn = useCallback(() => setChoices((now) => ({ ...now, reversed: !now.reversed })), []);

  const profile = useProfile(report, choices);
  const { snapshot, base } = profile;
  const process = conditionOn(choices.filter, "process");
  const pid = process === null ? null : Number(process);
  useKeys({ tabs, choose, helping, setHelping, toggleTheme, searchField, turn });

  const showTime = (timeMs: number) => {
    if (snapshots.length > 0) {
      choose({ at: nearestSnapshot(snapshots, timeMs), base: null });
    }
  };
  const showWindow = (fromMs: number, toMs: number) => {
    if (snapshots.length === 0) {
      return;
    }
    const [from, to] = [nearestSnapshot(snapshots, fromMs), nearestSnapshot(snapshots, toMs)];
    choose(from === to ? { at: to, base: null } : { base: from, at: to, tab: "flame" });
  };

  return (
    <>
      <a className="skip" href="#views">
        Skip to the profile
      </a>
      <Headline
        report={report}
        snapshot={snapshot}
        theme={theme}
        toggleTheme={toggleTheme}
        help={() => setHelping(true)}
        openDiagnosis={() => {
          choose({ tab: "diagnosis" });
          document.getElementById("views")?.scrollIntoView();
        }}
      />
      <main>
        <section className="panel" aria-label="Timeline">
          <Timeline
            report={report}
            theme={theme}
            pid={pid}
            atMs={snapshot?.timeMs ?? null}
            baseMs={base?.timeMs ?? null}
            onTime={showTime}
            onWindow={showWindow}
          />
        </section>
        <LedgerChart report={report} theme={theme} pid={pid} />
        <section className="panel views" id="views" aria-label="Profile">
          <TabList tabs={tabs} tab={choices.tab} choose={(tab) => choose({ tab })} />
          {choices.tab !== "diagnosis" && (
            <Toolbar report={report} choices={choices} choose={choose} searchField={searchField} />
          )}
          <View {...profile} choices={choices} choose={choose} theme={theme} />
        </section>
      </main>
      <footer className="foot">
        Tidemark · {summary.target.python ? `CPython ${summary.target.python} · ` : ""}
        {formatUtcTime(summary.window.startMs)} · figures are{" "}
        {summary.imported === undefined
          ? "estimates from samples, ± one standard error"
          : precisionText(summary.imported)}
      </footer>
      {helping && <Help imported={summary.imported} close={() => setHelping(false)} />}
    </>
  );
}
