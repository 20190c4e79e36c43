/** The memory of a service by endpoint, from the stacks that its programs sent. */
import { float64At, uint32At } from "../../model/base/columns.js";
import { endpointsOf, endpointText } from "../../model/documents/endpoints.js";
import type { EndpointsJson } from "../../model/documents/fleet_document.js";
import { pickSites } from "../../model/profile/site_columns.js";
import type { Selection, Store, Window, WindowProfile } from "../../store/index.js";

/** Most stacks that are read; the others are in "outside", and `limits` has a sentence about them. */
const MOST_STACKS = 100_000;

type Figures = EndpointsJson["outside"];

export async function endpoints(
  store: Store,
  of: Selection,
  window: Window,
  top: number,
): Promise<EndpointsJson> {
  const profile = await store.profile({ ...window, of, mostStacks: MOST_STACKS });
  const { tables, snapshot, otherStacks, instances } = profile;
  const found = endpointsOf(tables);
  const outside: Figures = { liveBytes: 0, liveObjects: 0, allocatedBytes: 0, stacks: 0 };
  const rows = new Map<string, EndpointsJson["endpoints"][number]>();
  const { sites } = snapshot;
  for (let site = 0; site < sites.length; site++) {
    const isRest = otherStacks > 0 && site === sites.length - 1;
    const endpoint = isRest ? undefined : found[uint32At(sites.stack, site)];
    let figures: Figures = outside;
    if (endpoint) {
      const name = endpointText(endpoint);
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
    service: of.service,
    window: { startMs: window.startMs, endMs: window.endMs },
    instances,
    endpoints: sorted.slice(0, top),
    other,
    outside,
    limits: [
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
  query: { readonly of: Selection } & Window,
  name: string,
): Promise<WindowProfile> {
  const profile = await store.profile({ ...query, mostStacks: MOST_STACKS });
  const { tables, snapshot, otherStacks } = profile;
  const found = endpointsOf(tables);
  const listed = snapshot.sites.length - (otherStacks > 0 ? 1 : 0);
  const rows = Array.from({ length: listed }, (_, row) => row).filter((row) => {
    const endpoint = found[uint32At(snapshot.sites.stack, row)];
    return endpoint && endpointText(endpoint) === name;
  });
  const sites = pickSites(snapshot.sites, rows, snapshot.cohorts.length);
  return { ...profile, snapshot: { ...snapshot, sites }, otherStacks: 0 };
}
