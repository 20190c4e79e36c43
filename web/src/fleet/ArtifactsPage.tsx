/** What collectors captured of programs: open a recording in the page, download the others. */
import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { Link } from "wouter";
import type {
  ArtifactsJson,
  StoredArtifactFileJson,
  StoredArtifactJson,
} from "../../../src/model/documents/artifact_document.js";
import { formatBytes, formatCount, formatWallClock } from "../format/numbers.js";
import { ReportApp } from "../report/ReportApp.js";
import { askArtifactReport, askArtifacts, saveArtifact } from "./frame/api.js";
import { Frame, Waiting } from "./frame/Frame.js";
import { useNow } from "./frame/live.js";
import { SearchField } from "./frame/SearchField.js";
import { serviceAddress, useAddress, useQueryText } from "./frame/timeRange.js";
import type { PageProps } from "./ServicesPage.js";

const PATH = [["Artifacts", "/artifacts"]] as const;

export function ArtifactsPage({ theme, toggleTheme }: PageProps) {
  const nowMs = useNow();
  const address = useAddress(nowMs);
  const query = useQuery({
    queryKey: ["artifacts", nowMs],
    queryFn: askArtifacts,
    placeholderData: keepPreviousData,
  });
  const wanted = address.get("q") ?? "";
  return (
    <Frame path={PATH} {...{ theme, toggleTheme }}>
      {query.data === undefined ? (
        <Waiting error={query.error} />
      ) : (
        <Artifacts
          document={query.data}
          wanted={wanted}
          search={(text) => address.change({ q: text })}
        />
      )}
    </Frame>
  );
}

function Artifacts({
  document: { artifacts, bytes, limits, recordings },
  wanted,
  search,
}: {
  document: ArtifactsJson;
  wanted: string;
  search: (text: string | null) => void;
}) {
  const shown = artifacts.filter((each) => textOf(each).includes(wanted.toLowerCase()));
  return (
    <section className="panel" aria-label="Artifacts">
      <div className="toolbar">
        <b>Artifacts</b>
        <SearchField
          label="Search artifacts"
          placeholder="Service, host, reason or file"
          value={wanted}
          set={search}
        />
        <span className="note">
          {formatCount(shown.length)} {shown.length === 1 ? "artifact" : "artifacts"},{" "}
          {formatBytes(bytes)}; kept for {Math.round(limits.keepMs / 86_400_000)} days, at most{" "}
          {formatCount(limits.count)} and {formatBytes(limits.bytes)}
        </span>
      </div>
      {artifacts.length === 0 && <NoArtifacts recordings={recordings} />}
      {artifacts.length > 0 && shown.length === 0 && (
        <p className="empty">No artifact matches the search.</p>
      )}
      {shown.map((artifact) => (
        <Artifact key={artifact.id} artifact={artifact} />
      ))}
    </section>
  );
}

function NoArtifacts({ recordings }: Pick<ArtifactsJson, "recordings">) {
  return (
    <div className="empty">
      <p>
        No collector has sent an artifact: heap snapshots, stacks and last moments that a policy's
        triggers capture. Record this host with such a policy:
      </p>
      <p>
        <code>tidemark watch --config policy.yaml --to {location.origin}</code>
      </p>
      <p>
        or copy a folder of a collector's artifacts into <code>artifacts/</code> of the server's
        data folder. {formatCount(recordings.streams)}{" "}
        {recordings.streams === 1 ? "recording is" : "recordings are"} here (
        {formatBytes(recordings.bytes)}): each opens as an{" "}
        <Link href="/">instance of its service</Link>.
      </p>
    </div>
  );
}

function Artifact({ artifact }: { artifact: StoredArtifactJson }) {
  const search = useQueryText();
  const { id, service, version, host, pid, timeMs, reason, lastMoment, files, problems } = artifact;
  return (
    <article className="fleet-alert" aria-label={`${service}: ${reason}`}>
      <header>
        <span className={`verdict-mark ${lastMoment ? "verdict-alarm" : "verdict-calm"}`}>
          {lastMoment ? "last moment" : "capture"}
        </span>
        <b>
          <Link href={serviceAddress(service, search)}>{service}</Link>
        </b>
        {version !== "" && <span>version {version}</span>}
        <span className="note">
          {formatWallClock(timeMs, true)}, process {pid} on {host}, {formatBytes(artifact.bytes)}
        </span>
      </header>
      <p>{reason}</p>
      <ul className="fleet-files">
        {files.map((file) => (
          <File key={file.name} id={id} file={file} />
        ))}
      </ul>
      {problems.map((problem) => (
        <p key={problem} className="note">
          {problem}
        </p>
      ))}
    </article>
  );
}

function File({ id, file }: { id: string; file: StoredArtifactFileJson }) {
  const [error, setError] = useState("");
  const save = () => {
    setError("");
    saveArtifact(id, file.name).catch((failure: Error) => setError(failure.message));
  };
  return (
    <li>
      <span>
        <code>{file.name}</code> <span className="note">{formatBytes(file.bytes)}</span>
      </span>
      {file.opens && (
        <Link className="toggle" href={`/artifacts/${id}/${file.name}`}>
          Open
        </Link>
      )}
      <button type="button" className="toggle" onClick={save} aria-label={`Download ${file.name}`}>
        Download
      </button>
      {error !== "" && <span role="alert">{error}</span>}
    </li>
  );
}

function textOf({ service, version, host, reason, files }: StoredArtifactJson): string {
  const names = files.map(({ name }) => name);
  return [service, version, host, reason, ...names].join(" ").toLowerCase();
}

/** A recording of an artifact: its report. */
export function ArtifactPage({
  id,
  name,
  theme,
  toggleTheme,
}: PageProps & { id: string; name: string }) {
  const report = useQuery({
    queryKey: ["artifact", id, name],
    queryFn: () => askArtifactReport(id, name),
    staleTime: Number.POSITIVE_INFINITY,
  });
  if (report.data === undefined) {
    return (
      <Frame path={PATH} {...{ theme, toggleTheme }}>
        <Waiting error={report.error} />
      </Frame>
    );
  }
  return (
    <>
      <nav className="fleet-path fleet-above" aria-label="Path">
        <Link href="/artifacts">Artifacts</Link>
        <code>{id.slice(0, 8)}</code>
        <code>{name}</code>
      </nav>
      <ReportApp report={report.data} />
    </>
  );
}
