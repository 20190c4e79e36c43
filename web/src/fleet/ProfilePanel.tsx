/** The flame graph and the allocation sites of a service, merged over its instances and the range of time. */
import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { useCallback, useMemo, useState } from "react";
import type { ReportDocument } from "../../../src/model/documents/report_document.js";
import { type Choices, firstChoices } from "../choices/choices.js";
import { FlamePanel } from "../flame/FlamePanel.js";
import { SitesTable } from "../sites/SitesTable.js";
import type { Theme } from "../theme/theme.js";
import { askProfile, type MergedProfile } from "./api.js";
import { Waiting } from "./Frame.js";
import type { TimeRange } from "./timeRange.js";

interface ProfilePanelProps {
  service: string;
  range: TimeRange;
  theme: Theme;
  versions: readonly string[];
  /** null: all. */
  version: string | null;
  choose: (version: string | null) => void;
}

const TABS = [
  ["flame", "Flame graph"],
  ["sites", "Sites"],
] as const;
const VALUES = [
  ["liveBytes", "Live"],
  ["allocatedBytes", "Allocated"],
  ["liveObjects", "Live objects"],
] as const;

export function ProfilePanel(props: ProfilePanelProps) {
  const { service, range, version } = props;
  const query = useQuery({
    queryKey: ["profile", service, range, version],
    queryFn: () => askProfile(service, range, version),
    placeholderData: keepPreviousData,
  });
  return (
    <section className="panel views" aria-label="Profile">
      {query.data === undefined ? (
        <Waiting error={query.error} />
      ) : (
        <Views {...props} profile={query.data} />
      )}
    </section>
  );
}

function Views(props: ProfilePanelProps & { profile: MergedProfile }) {
  const { profile, theme } = props;
  const [choices, setChoices] = useState<Choices>(() => firstChoices(0, undefined));
  const choose = useCallback(
    (change: Partial<Choices>) => setChoices((now) => ({ ...now, ...change })),
    [],
  );
  const report = useMemo(
    () => reportOf(props.service, props.range, profile),
    [props.service, props.range, profile],
  );
  const { snapshot } = profile;
  const rows = useMemo(
    () => Uint32Array.from({ length: snapshot.sites.length }, (_, row) => row),
    [snapshot],
  );
  const searchFor = useCallback((text: string) => choose({ search: text, tab: "flame" }), [choose]);
  const shared = { report, snapshot, rows, choices, choose, theme };
  return (
    <>
      <div className="tabs" role="tablist" aria-label="Views of the profile">
        {TABS.map(([id, label]) => (
          <button
            key={id}
            type="button"
            role="tab"
            aria-selected={choices.tab === id}
            onClick={() => choose({ tab: id })}
          >
            {label}
          </button>
        ))}
      </div>
      <ProfileToolbar {...props} choices={choices} changeChoices={choose} />
      <div className="view" role="tabpanel">
        {choices.tab === "sites" ? (
          <SitesTable {...shared} search={choices.search} searchFor={searchFor} />
        ) : (
          <FlamePanel {...shared} base={null} baseRows={null} />
        )}
      </div>
    </>
  );
}

interface ToolbarProps extends ProfilePanelProps {
  choices: Choices;
  changeChoices: (change: Partial<Choices>) => void;
}

function ProfileToolbar({ versions, version, choose, choices, changeChoices }: ToolbarProps) {
  return (
    <div className="toolbar">
      <fieldset className="segments" aria-label="Figure">
        {VALUES.map(([id, label]) => (
          <button
            key={id}
            type="button"
            aria-pressed={choices.value === id}
            onClick={() => changeChoices({ value: id })}
          >
            {label}
          </button>
        ))}
      </fieldset>
      <button
        type="button"
        className="toggle"
        aria-pressed={choices.reversed}
        onClick={() => changeChoices({ reversed: !choices.reversed })}
      >
        Callers below
      </button>
      {versions.length > 1 && (
        <label>
          Version{" "}
          <select value={version ?? ""} onChange={(event) => choose(event.target.value || null)}>
            <option value="">all</option>
            {versions.map((name) => (
              <option key={name}>{name}</option>
            ))}
          </select>
        </label>
      )}
      <input
        type="search"
        className="search"
        aria-label="Search functions"
        placeholder="Function or file"
        value={choices.search}
        onChange={(event) => changeChoices({ search: event.target.value })}
      />
    </div>
  );
}

/** The parts of a report that the profile views need. */
function reportOf(
  service: string,
  { startMs, endMs }: TimeRange,
  { tables, snapshot }: MergedProfile,
): ReportDocument {
  const rss = { peakBytes: 0, peakMs: startMs, endBytes: 0 };
  const samples = snapshot.sites.length;
  return {
    schema: "tidemark.report/1",
    title: service,
    summary: {
      schema: "tidemark.summary/1",
      target: { pid: 0, command: [service], python: "", startedMs: startMs },
      window: { startMs, endMs, points: 0 },
      atMs: snapshot.timeMs,
      rss,
      processes: [],
      sites: [],
      series: {
        startBytes: 0,
        minBytes: 0,
        baselineBytes: 0,
        growthBytesPerHour: 0,
        points: 0,
        treePssBytes: 0,
      },
      agent: { periodBytes: 0, samples, lost: 0, cpuMs: 0, allocatedBytesPerSecond: 0 },
      limits: [],
    },
    series: [],
    events: [],
    tables,
    snapshots: [snapshot],
  };
}
