/** The JSON answers of a server's API, by the names that its routes use. Their schemas are made from these types. */
import type { ActionsJson } from "../documents/action_document.js";
import type { AlertJson, AlertsJson } from "../documents/alert_document.js";
import type { ArtifactsJson } from "../documents/artifact_document.js";
import type { FleetDiagnosesJson } from "../documents/fleet_diagnosis_document.js";
import type {
  EndpointsJson,
  FleetDiffJson,
  FleetVerdictsJson,
  GrowingJson,
  InstanceRowJson,
  ServiceJson,
  ServicesJson,
} from "../documents/fleet_document.js";
import type { IngestJson } from "../documents/ingest_document.js";
import type { RequestJson, RequestsJson } from "../documents/request_document.js";
import type { FleetSizesJson } from "../documents/sizes_document.js";
import type { EvictionAnswer, LeaseAnswer } from "./actions.js";
import type { ArtifactAnswer } from "./artifacts.js";
import type { FramesAnswer } from "./frames.js";
import type { HeatMapAnswer } from "./heat_map.js";
import type { CollectorAnswer } from "./requests.js";
import type { ProfileAnswer, SeriesAnswer } from "./services.js";

export interface ApiAnswers {
  services: ServicesJson;
  service: ServiceJson;
  series: SeriesAnswer;
  heatMap: HeatMapAnswer;
  profile: ProfileAnswer;
  diff: FleetDiffJson;
  growing: GrowingJson;
  endpoints: EndpointsJson;
  verdicts: FleetVerdictsJson;
  diagnoses: FleetDiagnosesJson;
  sizes: FleetSizesJson;
  alerts: AlertsJson;
  alert: AlertJson;
  actions: ActionsJson;
  ingest: IngestJson;
  artifacts: ArtifactsJson;
  artifact: ArtifactAnswer;
  lease: LeaseAnswer;
  eviction: EvictionAnswer;
  requests: RequestsJson;
  request: RequestJson;
  collector: CollectorAnswer;
  instance: InstanceAnswer;
  frames: FramesAnswer;
  health: HealthAnswer;
  error: ErrorAnswer;
}

/** An instance, and its service. */
export type InstanceAnswer = InstanceRowJson & { readonly service: string };

export interface HealthAnswer {
  readonly ok: true;
}

export interface ErrorAnswer {
  /** One line. */
  readonly error: string;
}
