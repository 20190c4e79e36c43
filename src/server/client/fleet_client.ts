/** The client of a server: `tidemark fleet`. */
import type { Millis } from "../../model/base/units.js";
import type { ActionsJson } from "../../model/documents/action_document.js";
import type { AlertsJson } from "../../model/documents/alert_document.js";
import type { FleetDiagnosesJson } from "../../model/documents/fleet_diagnosis_document.js";
import type {
  EndpointsJson,
  FleetDiffJson,
  FleetVerdictsJson,
  GrowingJson,
  ServiceJson,
  ServicesJson,
} from "../../model/documents/fleet_document.js";
import type { RequestJson, RequestsJson } from "../../model/documents/request_document.js";
import type { FleetSizesJson } from "../../model/documents/sizes_document.js";
import { badUsage, nothingThere, oneLine, TidemarkError } from "../../model/errors/errors.js";
import { reasonOf } from "../../model/errors/reason.js";
import { serverUnreachable, tokenRefused } from "../../model/errors/server_errors.js";
import { ACTIONS_PATH } from "../../model/wire/actions.js";
import { type PartialAnswer, partialIn } from "../../model/wire/partial.js";
import { REQUESTS_PATH } from "../../model/wire/requests_path.js";
import {
  ALERTS_PATH,
  DIAGNOSES_PATH,
  DIFF_PATH,
  ENDPOINTS_PATH,
  GROWING_PATH,
  SERVICE_PATH,
  SERVICES_PATH,
  SIZES_PATH,
  VERDICTS_PATH,
} from "../../model/wire/services.js";
import type { Destination } from "../../recording/sender/post_connection.js";
import type { Window } from "../../store/index.js";

/** The body of an answer that refuses. */
interface Refusal {
  readonly error?: string;
  /** What happened, without the next step. */
  readonly what?: string;
}

const PATIENCE_MS = 30_000;
/** A thousand services take half a minute. */
const DIAGNOSES_PATIENCE_MS = 180_000;

interface Side {
  readonly selector: string;
  readonly window: Window;
}

export class FleetClient {
  readonly #destination: Destination;
  readonly #onPartial: (partial: PartialAnswer) => void;

  /** `onPartial` is called for each answer that lacks a part of the server's database. */
  constructor(destination: Destination, onPartial: (partial: PartialAnswer) => void) {
    this.#destination = destination;
    this.#onPartial = onPartial;
  }

  /** Throws TidemarkError. */
  services(window: Window): Promise<ServicesJson> {
    return this.#get<ServicesJson>(SERVICES_PATH, window, {});
  }

  /** Throws TidemarkError. */
  service(name: string, window: Window): Promise<ServiceJson> {
    return this.#get<ServiceJson>(SERVICE_PATH, window, { name });
  }

  /** The stacks that grew in the window. `top`: how many to list. Throws TidemarkError. */
  growing(service: string, window: Window, top: number): Promise<GrowingJson> {
    return this.#get<GrowingJson>(GROWING_PATH, window, { service, top: String(top) });
  }

  /** Memory by endpoint, or by the values of the label `by`; `where`: "KEY=VALUE" of a label. `top`: how many to list. Throws
   * TidemarkError. */
  endpoints(
    service: string,
    window: Window,
    { top, by, where }: { top: number; by?: string | undefined; where?: string | undefined },
  ): Promise<EndpointsJson> {
    const labels = { ...(by !== undefined && { by }), ...(where !== undefined && { where }) };
    return this.#get<EndpointsJson>(ENDPOINTS_PATH, window, {
      ...{ service, top: String(top) },
      ...labels,
    });
  }

  /** `service`: only this one. Throws TidemarkError. */
  diagnoses(window: Window, service: string | undefined): Promise<FleetDiagnosesJson> {
    const parameters: Record<string, string> = service === undefined ? {} : { service };
    return this.#get<FleetDiagnosesJson>(DIAGNOSES_PATH, window, parameters, DIAGNOSES_PATIENCE_MS);
  }

  /** `service`: only of this one. Throws TidemarkError. */
  sizes(window: Window, service: string | undefined): Promise<FleetSizesJson> {
    const parameters: Record<string, string> = service === undefined ? {} : { service };
    return this.#get<FleetSizesJson>(SIZES_PATH, window, parameters, DIAGNOSES_PATIENCE_MS);
  }

  /** Throws TidemarkError. */
  alerts(): Promise<AlertsJson> {
    return this.#get<AlertsJson>(ALERTS_PATH, null, {});
  }

  /** `service`: only of this one. Throws TidemarkError. */
  actions(service: string | undefined): Promise<ActionsJson> {
    return this.#get<ActionsJson>(ACTIONS_PATH, null, service === undefined ? {} : { service });
  }

  /** Asks all collectors for a profile of a service. Throws TidemarkError. */
  async requestProfile(service: string, forMs: Millis, by: string): Promise<RequestJson> {
    const { status, body } = await this.#send(REQUESTS_PATH, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ service, forMs, by }),
    });
    if (status !== 200) {
      const { error = `status ${status}` } = (body ?? {}) as Refusal;
      throwNothingThere(status, body);
      throw badUsage(
        `the server does not accept the request: ${lineOf(error)}`,
        "list them: tidemark fleet requests",
      );
    }
    return body as RequestJson;
  }

  /** `service`: only of this one. Throws TidemarkError. */
  requests(service: string | undefined): Promise<RequestsJson> {
    return this.#get<RequestsJson>(REQUESTS_PATH, null, service === undefined ? {} : { service });
  }

  /** Throws TidemarkError. */
  verdicts(window: Window): Promise<FleetVerdictsJson> {
    return this.#get<FleetVerdictsJson>(VERDICTS_PATH, window, {});
  }

  /** The differences between two selections, each in its window. Throws TidemarkError. */
  diff([left, right]: readonly [Side, Side], top: number): Promise<FleetDiffJson> {
    return this.#get<FleetDiffJson>(DIFF_PATH, right.window, {
      left: left.selector,
      right: right.selector,
      leftFrom: String(left.window.startMs),
      leftTo: String(left.window.endMs),
      top: String(top),
    });
  }

  async #get<Document extends { readonly schema: string }>(
    path: string,
    window: Window | null,
    parameters: Readonly<Record<string, string>>,
    patienceMs = PATIENCE_MS,
  ): Promise<Document> {
    const { url } = this.#destination;
    const range: Record<string, string> =
      window === null ? {} : { from: String(window.startMs), to: String(window.endMs) };
    const query = new URLSearchParams({ ...parameters, ...range });
    const { status, body } = await this.#send(`${path}?${query}`, {}, patienceMs);
    const { error = "", schema = "" } = (body ?? {}) as Refusal & { schema?: string };
    throwNothingThere(status, body);
    if (status === 400 && error !== "") {
      throw badUsage(`the server does not accept the request: ${lineOf(error)}`, "");
    }
    if (status !== 200 || !schema.startsWith("tidemark.")) {
      throw serverUnreachable(
        url,
        error === "" ? `it answers with status ${status}, and is not a Tidemark server` : error,
        "",
      );
    }
    return body as Document;
  }

  /** The answer with its body parsed; null if that is not JSON. */
  async #send(
    address: string,
    init: { method?: string; headers?: Record<string, string>; body?: string },
    patienceMs = PATIENCE_MS,
  ): Promise<{ status: number; body: unknown }> {
    const { url, token } = this.#destination;
    const authorization: Record<string, string> =
      token === null ? {} : { authorization: `Bearer ${token}` };
    try {
      const response = await fetch(`${url}${address}`, {
        ...init,
        headers: { ...init.headers, ...authorization },
        signal: AbortSignal.timeout(patienceMs),
        redirect: "error",
      });
      const partial = partialIn(response.headers);
      if (partial !== null) {
        this.#onPartial(partial);
      }
      if (response.status === 401 || response.status === 403) {
        throw tokenRefused(url);
      }
      return { status: response.status, body: await response.json().catch(() => null) };
    } catch (error) {
      if (error instanceof TidemarkError) {
        throw error;
      }
      const { cause } = error as { cause?: unknown };
      const { code, message } = reasonOf(cause ?? error);
      const reason = code === "ECONNREFUSED" ? "nothing listens there" : message;
      throw serverUnreachable(url, reason, "start one with: tidemark serve");
    }
  }
}

/** Throws TM-E014 if the server has nothing of this name, with what the server suggests. */
function throwNothingThere(status: number, body: unknown): void {
  const { error = "", what = "" } = (body ?? {}) as Refusal;
  if (status === 404 && error !== "") {
    const line = lineOf(error);
    const next = what !== "" && line.startsWith(`${what}; `) ? line.slice(what.length + 2) : "";
    throw nothingThere(
      next === "" ? line : oneLine(what),
      next || "list them: tidemark fleet services",
    );
  }
}

/** Without the id of an error. */
function lineOf(error: string): string {
  return oneLine(error.replace(/^TM-E\d+ /, ""));
}
