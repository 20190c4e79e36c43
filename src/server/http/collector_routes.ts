/** Routes of collectors and senders, and of what they did, sent and were asked for. */
import { ACTIONS_PATH, EVICTIONS_PATH, LEASES_PATH } from "../../model/wire/actions.js";
import {
  ARTIFACT_FILE_PATH,
  ARTIFACT_REPORT_PATH,
  ARTIFACTS_PATH,
  MOST_PIECE_BYTES,
} from "../../model/wire/artifacts.js";
import { FRAMES_PATH, MOST_FRAMES_BYTES } from "../../model/wire/frames.js";
import { COLLECTOR_PATH } from "../../model/wire/requests.js";
import { REQUESTS_PATH } from "../../model/wire/requests_path.js";
import {
  ACKNOWLEDGE_PATH,
  ALERTS_PATH,
  INGEST_PATH,
  SILENCE_PATH,
} from "../../model/wire/services.js";
import { type ApiRoute, COLUMNS_TYPE, query, route } from "./declared_route.js";
import { matching, neededWhole, text, whole } from "./parameters.js";
import { stream } from "./query_routes.js";

const change = {
  method: "post",
  group: "services",
  scope: "admin",
  parameters: {},
  body: ["application/json"],
  answer: { json: "alert" },
} as const;
const acting = {
  method: "post",
  group: "sending",
  scope: "act",
  parameters: {},
  body: ["application/json"],
} as const;
export const ALERTS = route({
  ...query,
  path: ALERTS_PATH,
  summary:
    "Alerts that fire, are pending, or were resolved within the last week; the rules and the receivers.",
  parameters: {},
  answer: { json: "alerts" },
});
export const ACKNOWLEDGE = route({
  ...change,
  path: ACKNOWLEDGE_PATH,
  summary:
    "Acknowledges an alert until it is resolved: `{by, note, undo}`, all optional. It is not repeated to receivers.",
});
export const SILENCE = route({
  ...change,
  path: SILENCE_PATH,
  summary:
    "Silences an alert for `forMs` (0 ends the silence; at most 30 days): `{forMs, by, note}`. Receivers are not notified, also if it is resolved and fires again.",
});
export const ACTIONS = route({
  ...query,
  path: ACTIONS_PATH,
  summary: "What collectors did for services that were short of memory, the newest first.",
  parameters: { service: text("Only of this service.") },
  answer: { json: "actions" },
});
export const LEASES = route({
  ...acting,
  path: LEASES_PATH,
  summary:
    "A collector asks whether it may act: `tidemark.action/1`. Granted if no other action runs in the service and the limits are kept.",
  answer: { json: "lease" },
});
export const EVICT = route({
  ...acting,
  path: EVICTIONS_PATH,
  summary:
    "A collector asks the server to evict the pod of a granted lease: `{id, pod}`, as in the request for the lease. Disruption budgets decide; 503 if the API server gave no answer.",
  answer: { json: "eviction" },
});
export const REPORT = route({
  ...acting,
  path: ACTIONS_PATH,
  summary: "A collector reports an action that was granted, or one that it did not carry out.",
  answer: { type: "application/json" },
});
export const ARTIFACTS = route({
  ...query,
  path: ARTIFACTS_PATH,
  summary: "Captures and last moments of programs that collectors sent, the newest first.",
  parameters: { service: text("Only of this service.") },
  answer: { json: "artifacts" },
});
export const INGEST_STATE = route({
  ...query,
  path: INGEST_PATH,
  summary:
    "Who sends what: streams, refused requests, values of labels; storage by service and tier, and retention.",
  parameters: {},
  answer: { json: "ingest" },
});
export const ARTIFACT_FILE = route({
  ...query,
  path: ARTIFACT_FILE_PATH,
  summary: "One file of an artifact, to download; `about.json` describes the artifact.",
  parameters: {},
  answer: { type: "application/octet-stream" },
});
export const ARTIFACT_REPORT = route({
  ...query,
  path: ARTIFACT_REPORT_PATH,
  summary: "The report of a recording in an artifact, for its page.",
  parameters: {},
  answer: { type: COLUMNS_TYPE },
});
export const PUT_ARTIFACT = route({
  method: "put",
  path: ARTIFACT_FILE_PATH,
  group: "sending",
  scope: "ingest",
  summary: `A collector uploads a file of an artifact, in pieces of at most ${MOST_PIECE_BYTES >> 20} MiB, and last \`about.json\`, whose SHA-256 begins with the id. The answer names the next offset.`,
  parameters: {
    sha256: matching("Of the whole file.", /^[0-9a-f]{64}$/, "a SHA-256, 64 hex digits"),
    bytes: neededWhole("Size of the whole file.", { least: 1, most: Number.MAX_SAFE_INTEGER }),
    offset: whole("Offset of the body in the file.", {
      least: 0,
      most: Number.MAX_SAFE_INTEGER,
      usual: 0,
    }),
  },
  body: ["application/octet-stream"],
  answer: { json: "artifact" },
});
export const REQUESTS = route({
  ...query,
  path: REQUESTS_PATH,
  summary: "Profiles that people asked collectors for, the newest first, and which hosts obey.",
  parameters: { service: text("Only of this service.") },
  answer: { json: "requests" },
});
export const WANTED = route({
  ...change,
  path: REQUESTS_PATH,
  summary:
    "Asks all collectors to give the programs of a service the agent for `forMs` (10 s to 1 h): `{service, forMs, by}`. The policy of each host decides.",
  answer: { json: "request" },
});
export const COLLECTOR = route({
  method: "post",
  path: COLLECTOR_PATH,
  group: "sending",
  scope: "ingest",
  summary:
    "A collector reports the outcome of the open requests, and gets the open ones and the policy that the server hands out.",
  parameters: {},
  body: ["application/json"],
  answer: { json: "collector" },
});
export const FRAMES = route({
  method: "post",
  path: FRAMES_PATH,
  group: "sending",
  scope: "ingest",
  summary: `Receives frames of a recording, at most ${MOST_FRAMES_BYTES >> 20} MiB a request. The answer names the next offset.`,
  parameters: {
    stream,
    offset: whole("Offset of the body in the stream.", {
      least: 0,
      most: Number.MAX_SAFE_INTEGER,
      usual: 0,
    }),
  },
  body: ["application/octet-stream"],
  answer: { json: "frames" },
});

export const COLLECTOR_ROUTES: readonly ApiRoute[] = [
  ALERTS,
  ACKNOWLEDGE,
  SILENCE,
  ACTIONS,
  LEASES,
  EVICT,
  REPORT,
  ARTIFACTS,
  INGEST_STATE,
  ARTIFACT_FILE,
  ARTIFACT_REPORT,
  PUT_ARTIFACT,
  REQUESTS,
  WANTED,
  COLLECTOR,
  FRAMES,
];
