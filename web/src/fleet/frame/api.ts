/** Requests to the server of these pages. */

import type { ActionsJson } from "../../../../src/model/documents/action_document.js";
import type { AlertJson, AlertsJson } from "../../../../src/model/documents/alert_document.js";
import type { ArtifactsJson } from "../../../../src/model/documents/artifact_document.js";
import { decodeColumns } from "../../../../src/model/documents/columns.js";
import type { FleetDiagnosesJson } from "../../../../src/model/documents/fleet_diagnosis_document.js";
import type {
  EndpointsJson,
  FleetDiffJson,
  FleetVerdictsJson,
  GrowingJson,
  InstanceRowJson,
  ServiceJson,
  ServicesJson,
} from "../../../../src/model/documents/fleet_document.js";
import type { IngestJson } from "../../../../src/model/documents/ingest_document.js";
import type { ReportDocument } from "../../../../src/model/documents/report_document.js";
import type {
  RequestJson,
  RequestsJson,
} from "../../../../src/model/documents/request_document.js";
import type { FleetSizesJson } from "../../../../src/model/documents/sizes_document.js";
import type { ProfileSnapshot, ProfileTables } from "../../../../src/model/profile/profile.js";
import { ACTIONS_PATH } from "../../../../src/model/wire/actions.js";
import {
  ARTIFACT_FILE_PATH,
  ARTIFACT_REPORT_PATH,
  ARTIFACTS_PATH,
} from "../../../../src/model/wire/artifacts.js";
import {
  HEAT_MAP_PATH,
  type HeatMapAnswer,
  type HeatMapName,
} from "../../../../src/model/wire/heat_map.js";
import { REQUESTS_PATH } from "../../../../src/model/wire/requests_path.js";
import {
  ACKNOWLEDGE_PATH,
  ALERTS_PATH,
  DIAGNOSES_PATH,
  DIFF_PATH,
  type DiffFigure,
  ENDPOINTS_PATH,
  GROWING_PATH,
  INGEST_PATH,
  INSTANCE_PATH,
  INSTANCE_REPORT_PATH,
  PROFILE_PATH,
  SERIES_PATH,
  SERVICE_PATH,
  SERVICES_PATH,
  type SeriesAnswer,
  type SeriesGroup,
  type SeriesName,
  SILENCE_PATH,
  SIZES_PATH,
  VERDICTS_PATH,
} from "../../../../src/model/wire/services.js";
import { noteAnswer } from "./partial.js";
import type { TimeRange } from "./timeRange.js";

/** The server refused the request, and will do so again. */
export class Refused extends Error {}

/** The server requires a token, or refused this one. */
export class TokenNeeded extends Refused {}

/** The server has nothing of this name. */
export class NotFound extends Refused {}

export interface MergedProfile {
  readonly tables: ProfileTables;
  readonly snapshot: ProfileSnapshot;
  /** What could not be seen, and why. */
  readonly limits: readonly string[];
}

export interface ComparedSide {
  /** As the page names it. */
  readonly name: string;
  readonly selector: string;
  readonly range: TimeRange;
}

/** Stored for this tab only. */
let token = sessionStorage.getItem("tidemark.token") ?? "";

export function setToken(text: string): void {
  token = text;
  sessionStorage.setItem("tidemark.token", text);
}

export function hasToken(): boolean {
  return token !== "";
}

export function askServices(range: TimeRange): Promise<ServicesJson> {
  return askJson(SERVICES_PATH, { ...windowOf(range), steps: "48" });
}

export function askService(name: string, range: TimeRange): Promise<ServiceJson> {
  return askJson(SERVICE_PATH, { ...windowOf(range), name });
}

export function askInstance(id: string): Promise<InstanceRowJson & { service: string }> {
  return askJson(INSTANCE_PATH, { id });
}

export function askSeries(
  service: string,
  range: TimeRange,
  { name, by }: { name: SeriesName; by: SeriesGroup },
): Promise<SeriesAnswer> {
  return askJson(SERIES_PATH, { ...windowOf(range), service, name, by, steps: "240" });
}

export function askHeatMap(
  service: string,
  range: TimeRange,
  name: HeatMapName,
): Promise<HeatMapAnswer> {
  return askJson(HEAT_MAP_PATH, { ...windowOf(range), service, name });
}

export function askGrowing(
  service: string,
  range: TimeRange,
  version: string | null,
): Promise<GrowingJson> {
  return askJson(GROWING_PATH, { ...windowOf(range), service, ...chosenVersion(version) });
}

export function askEndpoints(
  service: string,
  range: TimeRange,
  version: string | null,
): Promise<EndpointsJson> {
  return askJson(ENDPOINTS_PATH, { ...windowOf(range), service, ...chosenVersion(version) });
}

/** Means for each instance. */
export function askDiff(
  [left, right]: readonly [ComparedSide, ComparedSide],
  figure: DiffFigure,
): Promise<FleetDiffJson> {
  const [leftWindow, rightWindow] = [windowOf(left.range), windowOf(right.range)];
  return askJson(DIFF_PATH, {
    left: left.selector,
    right: right.selector,
    ...rightWindow,
    leftFrom: leftWindow.from,
    leftTo: leftWindow.to,
    figure,
    top: "500",
  });
}

export function askDiagnoses(range: TimeRange): Promise<FleetDiagnosesJson> {
  return askJson(DIAGNOSES_PATH, windowOf(range));
}

export function askSizes(range: TimeRange): Promise<FleetSizesJson> {
  return askJson(SIZES_PATH, windowOf(range));
}

export function askVerdicts(range: TimeRange): Promise<FleetVerdictsJson> {
  return askJson(VERDICTS_PATH, windowOf(range));
}

export function askAlerts(): Promise<AlertsJson> {
  return askJson(ALERTS_PATH, {});
}

export function askActions(): Promise<ActionsJson> {
  return askJson(ACTIONS_PATH, {});
}

export function askIngest(): Promise<IngestJson> {
  return askJson(INGEST_PATH, {});
}

export function askArtifacts(): Promise<ArtifactsJson> {
  return askJson(ARTIFACTS_PATH, {});
}

export async function askArtifactReport(id: string, name: string): Promise<ReportDocument> {
  const path = ARTIFACT_REPORT_PATH.replace("{id}", id).replace("{name}", name);
  return (await askColumns(path, {})) as ReportDocument;
}

/** Downloads a file of an artifact. A link cannot send a token, so with one the page fetches the file. */
export async function saveArtifact(id: string, name: string): Promise<void> {
  const path = ARTIFACT_FILE_PATH.replace("{id}", id).replace("{name}", name);
  const link = document.createElement("a");
  link.download = name;
  link.href = token === "" ? path : URL.createObjectURL(await (await ask(path, {})).blob());
  link.click();
  if (token !== "") {
    setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
  }
}

/** `undo`: takes the acknowledgement back. */
export function acknowledge(id: string, undo: boolean): Promise<AlertJson> {
  return change(ACKNOWLEDGE_PATH.replace("{id}", id), { undo });
}

/** `forMs`: 0 ends the silence. */
export function silence(id: string, forMs: number): Promise<AlertJson> {
  return change(SILENCE_PATH.replace("{id}", id), { forMs });
}

export function askRequests(service: string): Promise<RequestsJson> {
  return askJson(REQUESTS_PATH, { service });
}

/** Asks all collectors to give the programs of a service the agent for this time. */
export function requestProfile(service: string, forMs: number): Promise<RequestJson> {
  return change(REQUESTS_PATH, { service, forMs, by: "a page" });
}

export async function askReport(id: string): Promise<ReportDocument> {
  return (await askColumns(INSTANCE_REPORT_PATH, { id })) as ReportDocument;
}

export async function askProfile(
  service: string,
  range: TimeRange,
  { version, endpoint }: { version: string | null; endpoint: string | null },
): Promise<MergedProfile> {
  const parameters = {
    ...windowOf(range),
    service,
    format: "columns",
    ...chosenVersion(version),
    ...(endpoint === null ? {} : { endpoint }),
  };
  return (await askColumns(PROFILE_PATH, parameters)) as MergedProfile;
}

/** null: all versions. */
function chosenVersion(version: string | null): { version?: string } {
  return version === null ? {} : { version };
}

function windowOf({ startMs, endMs }: TimeRange): { from: string; to: string } {
  return { from: String(Math.floor(startMs)), to: String(Math.ceil(endMs)) };
}

async function askJson<Answer>(path: string, parameters: Record<string, string>): Promise<Answer> {
  return (await ask(path, parameters)).json() as Promise<Answer>;
}

async function askColumns(path: string, parameters: Record<string, string>): Promise<unknown> {
  const response = await ask(path, parameters);
  return decodeColumns(new Uint8Array(await response.arrayBuffer()), "the answer");
}

async function change<Answer>(path: string, body: object): Promise<Answer> {
  const response = await send(path, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(body),
  });
  return response.json() as Promise<Answer>;
}

function ask(path: string, parameters: Record<string, string>): Promise<Response> {
  return send(`${path}?${new URLSearchParams(parameters)}`, {});
}

/** Throws an Error with a one-line message for users. */
async function send(
  address: string,
  init: { method?: string; headers?: Record<string, string>; body?: string },
): Promise<Response> {
  const authorization: Record<string, string> =
    token === "" ? {} : { authorization: `Bearer ${token}` };
  const response = await fetch(address, {
    ...init,
    headers: { ...init.headers, ...authorization },
  }).catch(() => {
    throw new Error("The server does not answer. It may have been stopped; this page tries again.");
  });
  noteAnswer(address, response);
  if (response.status === 401) {
    const scope = init.method === "POST" ? "admin" : "read";
    throw new TokenNeeded(`This server requires a token with the scope ${scope}.`);
  }
  if (!response.ok) {
    const { error, what } = (await response.json().catch(() => ({}))) as {
      error?: string;
      what?: string;
    };
    if (response.status === 404 && what !== undefined) {
      throw new NotFound(what);
    }
    const line = error?.replace(/^TM-E\d+ /, "") ?? `The server answers with ${response.status}.`;
    throw response.status < 500 ? new Refused(line) : new Error(line);
  }
  return response;
}
