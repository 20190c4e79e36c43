/** What a service's memory was allocated for, over its instances and the range of time: five views. */
import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { useCallback, useMemo } from "react";
import type { InstanceRowJson } from "../../../../src/model/documents/fleet_document.js";
import type { ReportDocument } from "../../../../src/model/documents/report_document.js";
import { type Choices, type Choose, firstChoices } from "../../choices/choices.js";
import { FlamePanel } from "../../flame/FlamePanel.js";
import { SitesTable } from "../../sites/SitesTable.js";
import type { Theme } from "../../theme/theme.js";
import { askProfile, type MergedProfile } from "../frame/api.js";
import { Waiting } from "../frame/Frame.js";
import { SearchField } from "../frame/SearchField.js";
import type { Address, TimeRange } from "../frame/timeRange.js";
import { CompareView } from "./CompareView.js";
import { versionsOf } from "./comparison.js";
import { EndpointsView } from "./EndpointsView.js";
import { GrowingView } from "./GrowingView.js";

interface ProfilePanelProps {
  service: string;
  range: TimeRange;
  theme: Theme;
  instances: readonly InstanceRowJson[];
  /** Its parameters `view`, `figure`, `callers`, `search`, `version` and `endpoint` are the choices of this panel. */
  address: Pick<Address, "get" | "change">;
}

const VIEWS = [
  ["flame", "Flame graph"],
  ["sites", "Sites"],
  ["growing", "Growing"],
  ["endpoints", "Endpoints"],
  ["compare", "Compare"],
] as const;
const FIGURES = [
  ["liveBytes", "Live"],
  ["allocatedBytes", "Allocated"],
  ["liveObjects", "Live objects"],
] as const;

export function ProfilePanel(props: ProfilePanelProps) {
  const { service, range, theme, instances, address } = props;
  const view = VIEWS.find(([id]) => id === address.get("view"))?.[0] ?? "flame";
  const figure = FIGURES.find(([id]) => id === address.get("figure"))?.[0] ?? "liveBytes";
  const version = address.get("version");
  const isMerged = view === "flame" || view === "sites";
  return (
    <section className="panel views" aria-label="Profile">
      <div className="tabs tabs-wrapped" role="tablist" aria-label="Views of the profile">
        {VIEWS.map(([id, label]) => (
          <button
            key={id}
            type="button"
            role="tab"
            aria-selected={view === id}
            onClick={() => address.change({ view: id === "flame" ? null : id })}
          >
            {label}
          </button>
        ))}
      </div>
      <div className="toolbar">
        {(isMerged || view === "compare") && (
          <fieldset className="segments" aria-label="Figure">
            {FIGURES.map(([id, label]) => (
              <button
                key={id}
                type="button"
                aria-pressed={figure === id}
                onClick={() => address.change({ figure: id })}
              >
                {label}
              </button>
            ))}
          </fieldset>
        )}
        {view !== "compare" && (
          <VersionChoice versions={versionsOf(instances)} version={version} address={address} />
        )}
        {isMerged && <EndpointChosen address={address} />}
        {isMerged && <Search address={address} />}
      </div>
      <div className="view" role="tabpanel">
        {view === "growing" ? (
          <GrowingView {...{ service, range, version }} />
        ) : view === "endpoints" ? (
          <EndpointsView
            {...{ service, range, version }}
            choose={(endpoint) => address.change({ endpoint, view: null })}
          />
        ) : view === "compare" ? (
          <CompareView {...{ service, range, figure, instances, address }} />
        ) : (
          <Merged {...{ service, range, theme, version, view, figure, address }} />
        )}
      </div>
    </section>
  );
}

interface MergedProps extends Pick<ProfilePanelProps, "service" | "range" | "theme" | "address"> {
  /** null: all. */
  version: string | null;
  view: "flame" | "sites";
  figure: Choices["value"];
}

/** The merged profile as a flame graph or a table. */
function Merged({ service, range, theme, version, view, figure, address }: MergedProps) {
  const endpoint = address.get("endpoint");
  const query = useQuery({
    queryKey: ["profile", service, range, version, endpoint],
    queryFn: () => askProfile(service, range, { version, endpoint }),
    placeholderData: keepPreviousData,
  });
  return query.data === undefined ? (
    <Waiting error={query.error} />
  ) : (
    <Views {...{ service, range, theme, view, figure, address }} profile={query.data} />
  );
}

function Views({
  service,
  range,
  theme,
  view,
  figure,
  address: { get, change },
  profile,
}: Omit<MergedProps, "version"> & { profile: MergedProfile }) {
  const { snapshot } = profile;
  const report = useMemo(() => reportOf(service, range, profile), [service, range, profile]);
  const rows = useMemo(
    () => Uint32Array.from({ length: snapshot.sites.length }, (_, row) => row),
    [snapshot],
  );
  const search = get("search") ?? "";
  const reversed = get("callers") !== null;
  const choices: Choices = useMemo(
    () => ({ ...firstChoices(0, undefined), value: figure, reversed, search }),
    [figure, reversed, search],
  );
  const choose: Choose = useCallback(
    ({ search: text, reversed: callers }) => {
      change({
        ...(text === undefined ? {} : { search: text || null }),
        ...(callers === undefined ? {} : { callers: callers ? "below" : null }),
      });
    },
    [change],
  );
  const searchFor = useCallback(
    (text: string) => change({ search: text || null, view: null }),
    [change],
  );
  const shared = { report, snapshot, rows, choices, choose, theme };
  return (
    <>
      {profile.limits.map((sentence) => (
        <p key={sentence} className="note fleet-note">
          {sentence}
        </p>
      ))}
      {view === "sites" ? (
        <SitesTable {...shared} search={search} searchFor={searchFor} />
      ) : (
        <FlamePanel {...shared} base={null} baseRows={null} />
      )}
    </>
  );
}

interface VersionChoiceProps extends Pick<ProfilePanelProps, "address"> {
  versions: readonly string[];
  version: string | null;
}

function VersionChoice({ versions, version, address }: VersionChoiceProps) {
  return versions.length < 2 ? null : (
    <label className="select">
      Version
      <select
        value={version ?? ""}
        onChange={(event) => address.change({ version: event.target.value || null })}
      >
        <option value="">all</option>
        {versions.filter(Boolean).map((name) => (
          <option key={name}>{name}</option>
        ))}
      </select>
    </label>
  );
}

/** The endpoint to which the view is limited; a click removes the limit. */
function EndpointChosen({ address: { get, change } }: Pick<ProfilePanelProps, "address">) {
  const endpoint = get("endpoint");
  return endpoint === null ? null : (
    <button
      type="button"
      className="toggle"
      aria-pressed="true"
      title={`${endpoint}: show all endpoints again`}
      onClick={() => change({ endpoint: null })}
    >
      {endpoint.split(" ")[0]} ✕
    </button>
  );
}

function Search({ address: { get, change } }: Pick<ProfilePanelProps, "address">) {
  return (
    <>
      <button
        type="button"
        className="toggle"
        aria-pressed={get("callers") !== null}
        onClick={() => change({ callers: get("callers") === null ? "below" : null })}
      >
        Callers below
      </button>
      <SearchField
        label="Search functions"
        placeholder="Function or file"
        value={get("search")}
        set={(text) => change({ search: text })}
      />
    </>
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
