import { useCallback, useEffect, useMemo, useRef, useState } from "react";
import type { ReportDocument } from "../../../src/model/report.js";
import { selectSites } from "../../../src/model/site_filter.js";
import { type Choices, firstChoices, TAB_NAMES, type Tab, tabsOf } from "../choices/choices.js";
import { DiagnosisPanel } from "../diagnosis/DiagnosisPanel.js";
import { FlamePanel } from "../flame/FlamePanel.js";
import { formatUtcTime } from "../format/numbers.js";
import { LedgerChart } from "../ledger/LedgerChart.js";
import { AgesTable } from "../sites/AgesTable.js";
import { LifetimesTable } from "../sites/LifetimesTable.js";
import { ProcessesTable } from "../sites/ProcessesTable.js";
import { SitesTable } from "../sites/SitesTable.js";
import { useTheme } from "../theme/theme.js";
import { Timeline } from "../timeline/Timeline.js";
import { nearestLook, tellingLook } from "../timeline/timelineData.js";
import { Headline } from "./Headline.js";
import { Help } from "./Help.js";
import { Toolbar } from "./Toolbar.js";

export function ReportApp({ report }: { report: ReportDocument }) {
  const { tables, looks, summary } = report;
  const [theme, toggleTheme] = useTheme();
  const [choices, setChoices] = useState<Choices>(() =>
    firstChoices(Math.max(tellingLook(looks), 0)),
  );
  const [helping, setHelping] = useState(false);
  const tabs = useMemo(() => tabsOf(report), [report]);
  const searchField = useRef<HTMLInputElement>(null);
  const choose = useCallback(
    (change: Partial<Choices>) => setChoices((now) => ({ ...now, ...change })),
    [],
  );

  const look = looks[choices.at];
  const base = choices.base === null ? null : (looks[choices.base] ?? null);
  const rows = useMemo(
    () => (look ? selectSites(tables, look.sites, choices.filter) : new Uint32Array(0)),
    [tables, look, choices.filter],
  );
  const baseRows = useMemo(
    () => (base ? selectSites(tables, base.sites, choices.filter) : null),
    [tables, base, choices.filter],
  );
  const pid =
    choices.filter.process === null
      ? null
      : (tables.processes[choices.filter.process]?.pid ?? null);

  useEffect(() => {
    const pressed = (event: KeyboardEvent) => {
      const typing =
        event.target instanceof HTMLInputElement || event.target instanceof HTMLSelectElement;
      if (event.ctrlKey || event.metaKey || event.altKey) return;
      if (event.key === "Escape" && helping) setHelping(false);
      else if (typing) return;
      else if (event.key === "/") {
        event.preventDefault();
        searchField.current?.focus();
        searchField.current?.select();
      } else if (event.key === "?") setHelping((now) => !now);
      else if (event.key === "t") toggleTheme();
      else if (event.key === "r") setChoices((now) => ({ ...now, reversed: !now.reversed }));
      else {
        const tab = /^[1-9]$/.test(event.key) ? tabs[Number(event.key) - 1] : undefined;
        if (tab !== undefined) choose({ tab });
      }
    };
    addEventListener("keydown", pressed);
    return () => removeEventListener("keydown", pressed);
  }, [choose, helping, tabs, toggleTheme]);

  const showTime = (timeMs: number) => {
    if (looks.length > 0) choose({ at: nearestLook(looks, timeMs), base: null });
  };
  const showWindow = (fromMs: number, toMs: number) => {
    if (looks.length === 0) return;
    const [from, to] = [nearestLook(looks, fromMs), nearestLook(looks, toMs)];
    choose(from === to ? { at: to, base: null } : { base: from, at: to, tab: "flame" });
  };
  const searchFor = useCallback((text: string) => choose({ search: text, tab: "flame" }), [choose]);
  const shared = { report, look: look ?? null, rows, search: choices.search, searchFor };

  return (
    <>
      <a className="skip" href="#views">
        Skip to the profile
      </a>
      <Headline
        report={report}
        look={look ?? null}
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
            atMs={look?.timeMs ?? null}
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
          <div
            className="view"
            role="tabpanel"
            id={`view-${choices.tab}`}
            aria-labelledby={`tab-${choices.tab}`}
          >
            {choices.tab === "flame" && (
              <FlamePanel
                report={report}
                look={look ?? null}
                base={base}
                rows={rows}
                baseRows={baseRows}
                choices={choices}
                choose={choose}
                theme={theme}
              />
            )}
            {choices.tab === "sites" && <SitesTable {...shared} />}
            {choices.tab === "ages" && <AgesTable {...shared} />}
            {choices.tab === "lifetimes" && <LifetimesTable {...shared} />}
            {choices.tab === "processes" && (
              <ProcessesTable report={report} search={choices.search} />
            )}
            {choices.tab === "diagnosis" && report.diagnosis && (
              <DiagnosisPanel page={report.diagnosis} />
            )}
          </div>
        </section>
      </main>
      <footer className="foot">
        Tidemark · {summary.target.python ? `CPython ${summary.target.python} · ` : ""}
        {formatUtcTime(summary.window.startMs)} · figures are estimates from samples, ± one standard
        error
      </footer>
      {helping && <Help close={() => setHelping(false)} />}
    </>
  );
}

interface TabListProps {
  tabs: readonly Tab[];
  tab: Tab;
  choose: (tab: Tab) => void;
}

function TabList({ tabs, tab, choose }: TabListProps) {
  const list = useRef<HTMLDivElement>(null);
  const step = (by: number) => {
    const next = tabs[(tabs.indexOf(tab) + by + tabs.length) % tabs.length];
    choose(next);
    list.current?.querySelector<HTMLElement>(`#tab-${next}`)?.focus();
  };
  return (
    <div className="tabs" role="tablist" aria-label="Views" ref={list}>
      {tabs.map((name) => (
        <button
          key={name}
          id={`tab-${name}`}
          type="button"
          role="tab"
          aria-selected={name === tab}
          aria-controls={`view-${name}`}
          tabIndex={name === tab ? 0 : -1}
          onClick={() => choose(name)}
          onKeyDown={(event) => {
            if (event.key === "ArrowRight") step(1);
            else if (event.key === "ArrowLeft") step(-1);
          }}
        >
          {TAB_NAMES[name]}
        </button>
      ))}
    </div>
  );
}
