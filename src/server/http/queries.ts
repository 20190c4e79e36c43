/** The queries that the store answers, and the report of one instance. */

import type { Hono } from "hono";
import { float64At, uint8At, uint32At } from "../../model/base/columns.js";
import { nothingThere } from "../../model/errors/errors.js";
import { framesOf } from "../../model/profile/frame_text.js";
import { Domain } from "../../model/profile/profile.js";
import type { HeatMapAnswer } from "../../model/wire/heat_map.js";
import type { ProfileAnswer } from "../../model/wire/services.js";
import type { Selection, Store, WindowProfile } from "../../store/index.js";
import { fleetDiff, frameJson, growing } from "../answers/comparisons.js";
import { coverageLimits, coverageOf } from "../answers/coverage.js";
import type { Diagnoses } from "../answers/diagnoses.js";
import { ENDPOINT_LABEL, endpointProfile, endpoints } from "../answers/endpoints.js";
import { heatMap } from "../answers/heat_map.js";
import type { KnownNames } from "../answers/known_names.js";
import type { Sizes } from "../answers/sizes.js";
import { hasYoung, withInstanceVerdicts } from "../answers/young_services.js";
import { seriesMatchers } from "../grafana/querier.js";
import type { Ingest } from "../ingest/ingest.js";
import { columns } from "./columns.js";
import { openApiDocument } from "./openapi.js";
import { valuesIn, windowOf } from "./parameters.js";
import {
  DIAGNOSES,
  DIFF,
  ENDPOINTS,
  GROWING,
  HEAT_MAP,
  INSTANCE,
  INSTANCE_REPORT,
  PROFILE,
  SERIES,
  SERVICE,
  SERVICES,
  SIZES,
  VERDICTS,
} from "./query_routes.js";

export interface QueryParts {
  readonly store: Store;
  readonly names: KnownNames;
  /** Its acknowledged frames reach the store about a second later. */
  readonly ingest: Pick<Ingest, "flush">;
  readonly diagnoses: Diagnoses;
  readonly sizes: Sizes;
  /** The report of a stream as columns. Throws TidemarkError. */
  readonly report: (stream: string) => Promise<object>;
}

const MOST_STACKS = 8_192;
const USUAL_STACKS = 100;

export function addQueries(
  app: Hono,
  { store, names, ingest, diagnoses, sizes, report }: QueryParts,
): void {
  /** What is not known may have been acknowledged a moment ago: it is asked for again once that is in the store. */
  const found = async <Answer>(ask: () => Promise<Answer | null>): Promise<Answer | null> => {
    const answer = await ask();
    if (answer !== null) {
      return answer;
    }
    await ingest.flush();
    return ask();
  };
  /** An empty answer is refused if the service or the version is not known. */
  const ofKnown = async <Answer>(
    of: Pick<Selection, "service" | "version">,
    ask: () => Promise<Answer>,
    isEmpty: (answer: Answer) => boolean,
  ): Promise<Answer> => {
    const answer = await ask();
    if (!isEmpty(answer)) {
      return answer;
    }
    await names.mustKnow(of.service, of.version);
    return ask();
  };
  app.get(SERVICES.path, async (context) => {
    const { steps, ...asked } = valuesIn(context.req.url, SERVICES.parameters);
    return context.json(await store.services(windowOf(asked), steps));
  });
  app.get(SERVICE.path, async (context) => {
    const { name, steps, ...asked } = valuesIn(context.req.url, SERVICE.parameters);
    const ask = () => store.service(name, windowOf(asked), steps);
    return context.json(await ofKnown({ service: name }, ask, (answer) => answer === null));
  });
  app.get(SERIES.path, async (context) => {
    const { name, by, steps, ...asked } = valuesIn(context.req.url, SERIES.parameters);
    const window = windowOf(asked);
    const stepMs = Math.max(1, Math.ceil((window.endMs - window.startMs) / steps));
    const of = selectionIn(asked);
    const answer = await ofKnown(
      of,
      () => store.series({ ...window, ...of, name, by, stepMs }),
      ({ groups }) => groups.length === 0,
    );
    return context.json(answer);
  });
  app.get(HEAT_MAP.path, async (context) => {
    const asked = valuesIn(context.req.url, HEAT_MAP.parameters);
    const { service, version, name, steps, top } = asked;
    const of = version === undefined ? { service } : { service, version };
    const query = { ...windowOf(asked), ...of, name, steps, top };
    const isEmpty = (answer: HeatMapAnswer | null) =>
      answer === null || answer.instances.length === 0;
    return context.json(await ofKnown(of, () => heatMap(store, query), isEmpty));
  });
  app.get(PROFILE.path, async (context) => {
    const { format, top, endpoint, where, ...asked } = valuesIn(
      context.req.url,
      PROFILE.parameters,
    );
    const window = windowOf(asked);
    const of = selectionIn(asked);
    const mostStacks = top ?? (format === "json" ? USUAL_STACKS : MOST_STACKS);
    const asks = { ...window, of, ...(where && { where }) };
    const profile = await ofKnown(
      of,
      () =>
        endpoint === undefined
          ? store.profile({ ...asks, mostStacks, over: "reported" })
          : endpointProfile(store, asks, endpoint),
      ({ snapshot }) => snapshot.sites.length === 0,
    );
    const coverage = await coverageOf(store, of, profile);
    const { tables, snapshot } = profile;
    const limits = coverageLimits(coverage);
    return format === "json"
      ? context.json({
          ...answerOf(profile, of.service, { ...window, mostStacks }),
          ...{ coverage, limits },
        } satisfies ProfileAnswer)
      : columns(context, { tables, snapshot, coverage, limits });
  });
  app.get(DIFF.path, async (context) => {
    const asked = valuesIn(context.req.url, DIFF.parameters);
    const { left, right, figure, per, top } = asked;
    const side = (selector: string, from: number | undefined, to: number | undefined) => ({
      selector,
      window: windowOf({ from: from ?? asked.from, to: to ?? asked.to }),
    });
    const sides = [
      side(left, asked.leftFrom, asked.leftTo),
      side(right, asked.rightFrom, asked.rightTo),
    ] as const;
    const document = await fleetDiff(store, sides, { figure, per, top });
    for (const each of [document.left, document.right]) {
      const unknown = each.isUnknown
        ? await names.unknownOf(seriesMatchers([each.selector]))
        : null;
      if (unknown !== null) {
        each.unknown = `${unknown.what}; ${unknown.next}`;
      }
    }
    return context.json(document);
  });
  app.get(GROWING.path, async (context) => {
    const { top, ...asked } = valuesIn(context.req.url, GROWING.parameters);
    await names.mustKnow(asked.service, asked.version);
    return context.json(await growing(store, selectionIn(asked), windowOf(asked), top));
  });
  app.get(ENDPOINTS.path, async (context) => {
    const { top, by, where, ...asked } = valuesIn(context.req.url, ENDPOINTS.parameters);
    await names.mustKnow(asked.service, asked.version);
    const asks = { ...windowOf(asked), of: selectionIn(asked), ...(where && { where }) };
    return context.json(await endpoints(store, asks, { by: by ?? ENDPOINT_LABEL, top }));
  });
  app.get(VERDICTS.path, async (context) => {
    const { kind, ...asked } = valuesIn(context.req.url, VERDICTS.parameters);
    return context.json(await store.verdicts(windowOf(asked), kind));
  });
  app.get(DIAGNOSES.path, async (context) => {
    const { service, ...asked } = valuesIn(context.req.url, DIAGNOSES.parameters);
    if (service !== undefined) {
      await names.mustKnow(service);
    }
    const window = windowOf(asked);
    const document = await diagnoses.in(window, service);
    return context.json(
      hasYoung(document)
        ? withInstanceVerdicts(document, await store.verdicts(window, undefined))
        : document,
    );
  });
  app.get(SIZES.path, async (context) => {
    const { service, ...asked } = valuesIn(context.req.url, SIZES.parameters);
    if (service !== undefined) {
      await names.mustKnow(service);
    }
    return context.json(await sizes.in(windowOf(asked), service));
  });
  app.get(INSTANCE.path, async (context) => {
    const { id } = valuesIn(context.req.url, INSTANCE.parameters);
    const row = await found(() => store.instance(id));
    if (row === null) {
      throw nothingThere("no instance has this name", "list them: tidemark fleet service NAME");
    }
    return context.json(row);
  });
  app.get(INSTANCE_REPORT.path, async (context) => {
    const { id } = valuesIn(context.req.url, INSTANCE_REPORT.parameters);
    return columns(context, await report(id));
  });
  const api = openApiDocument();
  app.get("/api/openapi.json", (context) => context.json(api));
}

function selectionIn({
  service,
  version,
  instance,
}: {
  service: string;
  version: string | undefined;
  instance: string | undefined;
}): Selection {
  return {
    service,
    ...(version === undefined ? {} : { version }),
    ...(instance === undefined ? {} : { stream: instance }),
  };
}

const DOMAIN_NAMES = Object.keys(Domain) as (keyof typeof Domain)[];

function answerOf(
  { tables, snapshot, otherStacks }: WindowProfile,
  service: string,
  { startMs, endMs, mostStacks }: { startMs: number; endMs: number; mostStacks: number },
): Omit<ProfileAnswer, "coverage" | "limits"> {
  const { sites } = snapshot;
  const sum = (column: Float64Array) => column.reduce((total, value) => total + value, 0);
  const known = sites.length - (otherStacks > 0 ? 1 : 0);
  const rows = Array.from({ length: known }, (_, row) => row)
    .sort((a, b) => float64At(sites.liveBytes, b) - float64At(sites.liveBytes, a))
    .slice(0, mostStacks);
  const stacks = rows.map((row) => ({
    stack: framesOf(tables, uint32At(sites.stack, row)).map((frame) => frameJson(tables, frame)),
    domain: DOMAIN_NAMES[uint8At(sites.domain, row)] ?? "python",
    liveBytes: float64At(sites.liveBytes, row),
    liveObjects: float64At(sites.liveObjects, row),
    allocatedBytes: float64At(sites.allocatedBytes, row),
  }));
  const [liveBytes, allocatedBytes] = [sum(sites.liveBytes), sum(sites.allocatedBytes)];
  const left = known - rows.length + otherStacks;
  const rest = (total: number, listed: number) => (left === 0 ? 0 : Math.max(0, total - listed));
  return {
    service,
    startMs,
    endMs,
    liveBytes,
    allocatedBytes,
    stacks,
    other: {
      stacks: left,
      liveBytes: rest(
        liveBytes,
        stacks.reduce((total, row) => total + row.liveBytes, 0),
      ),
      allocatedBytes: rest(
        allocatedBytes,
        stacks.reduce((total, row) => total + row.allocatedBytes, 0),
      ),
    },
  };
}
