/**
 * The memory of a service by endpoint: the label `endpoint` that a program sets (`tidemark.label`), else the function that a
 * framework called, found in the stacks. Also by any other label.
 */
import { float64At, uint32At } from "../../model/base/columns.js";
import { type Endpoint, endpointsOf, endpointText } from "../../model/documents/endpoints.js";
import type { EndpointsJson } from "../../model/documents/fleet_document.js";
import { labelPairs } from "../../model/profile/frame_text.js";
import { pickSites } from "../../model/profile/site_columns.js";
import type { SampleLabel, Selection, Store, Window, WindowProfile } from "../../store/index.js";

import { coverageLimits, coverageOf } from "./coverage.js";

/** Most stacks that are read; the others are in "outside", and `limits` has a sentence about them. */
const MOST_STACKS = 100_000;

/** The label that names an endpoint; see docs/labels.md. */
export const ENDPOINT_LABEL = "endpoint";
/** The `framework` of what a label names. */
const LABELLED = "tidemark.label";

type Figures = EndpointsJson["outside"];

interface EndpointQuery extends Window {
  readonly of: Selection;
  readonly where?: SampleLabel;
}

export async function endpoints(
  store: Store,
  query: EndpointQuery,
  { by, top }: { readonly by: string; readonly top: number },
): Promise<EndpointsJson> {
  const profile = await store.profile({
    ...query,
    byLabel: by,
    mostStacks: MOST_STACKS,
    over: "reported",
  });
  const { snapshot, otherStacks, instances } = profile;
  const coverage = await coverageOf(store, query.of, profile);
  const found = groupsOf(profile, by);
  const outside: Figures = { liveBytes: 0, liveObjects: 0, allocatedBytes: 0, stacks: 0 };
  const rows = new Map<string, EndpointsJson["endpoints"][number]>();
  const { sites } = snapshot;
  for (let site = 0; site < sites.length; site++) {
    const isRest = otherStacks > 0 && site === sites.length - 1;
    const endpoint = isRest ? undefined : found[site];
    let figures: Figures = outside;
    if (endpoint) {
      const { name } = endpoint;
      const row = rows.get(name) ?? {
        endpoint: name,
        function: endpoint.function,
        file: endpoint.file,
        framework: endpoint.framework,
        liveBytes: 0,
        liveObjects: 0,
        allocatedBytes: 0,
        stacks: 0,
      };
      rows.set(name, row);
      figures = row;
    }
    figures.liveBytes += float64At(sites.liveBytes, site);
    figures.liveObjects += float64At(sites.liveObjects, site);
    figures.allocatedBytes += float64At(sites.allocatedBytes, site);
    figures.stacks += isRest ? otherStacks : 1;
  }
  const sorted = [...rows.values()].sort((a, b) => b.liveBytes - a.liveBytes);
  const other = { liveBytes: 0, liveObjects: 0, allocatedBytes: 0, stacks: 0, endpoints: 0 };
  for (const row of sorted.slice(top)) {
    other.endpoints += 1;
    other.liveBytes += row.liveBytes;
    other.liveObjects += row.liveObjects;
    other.allocatedBytes += row.allocatedBytes;
    other.stacks += row.stacks;
  }
  return {
    schema: "tidemark.endpoints/1",
    service: query.of.service,
    window: { startMs: query.startMs, endMs: query.endMs },
    instances,
    coverage,
    endpoints: sorted.slice(0, top),
    other,
    outside,
    limits: [
      ...coverageLimits(coverage),
      ...(profile.profiles === 0
        ? ["No process of this service has a profile in this window."]
        : []),
      ...(otherStacks > 0
        ? [`${otherStacks} stacks with little memory are counted as outside of endpoints.`]
        : []),
    ],
  };
}

/** The profile of one endpoint, named as in the answer above. The store's "other" belongs to none. */
export async function endpointProfile(
  store: Store,
  query: EndpointQuery,
  name: string,
): Promise<WindowProfile> {
  const profile = await store.profile({
    ...query,
    byLabel: ENDPOINT_LABEL,
    mostStacks: MOST_STACKS,
    over: "reported",
  });
  const { snapshot, otherStacks } = profile;
  const found = groupsOf(profile, ENDPOINT_LABEL);
  const listed = snapshot.sites.length - (otherStacks > 0 ? 1 : 0);
  const rows = Array.from({ length: listed }, (_, row) => row).filter(
    (row) => found[row]?.name === name,
  );
  const sites = pickSites(snapshot.sites, rows, snapshot.cohorts.length);
  return { ...profile, snapshot: { ...snapshot, sites }, otherStacks: 0 };
}

/** By site: what it belongs to, if anything. */
function groupsOf(
  { tables, snapshot }: WindowProfile,
  by: string,
): ((Endpoint & { readonly name: string }) | null)[] {
  const { sites } = snapshot;
  const called = by === ENDPOINT_LABEL ? endpointsOf(tables) : [];
  return Array.from({ length: sites.length }, (_, site) => {
    for (const [, value] of labelPairs(tables, uint32At(sites.label, site))) {
      return { name: value, function: value, file: "", framework: LABELLED };
    }
    const endpoint = called[uint32At(sites.stack, site)] ?? null;
    return endpoint && { ...endpoint, name: endpointText(endpoint) };
  });
}
