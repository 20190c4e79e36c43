/** Services and versions that are stored, and the names that someone may have meant who named another. */
import { nearNames } from "../../model/base/near_miss.js";
import { nothingThere, oneLine, type TidemarkError } from "../../model/errors/errors.js";
import type { LabelMatcher, Store } from "../../store/index.js";
import type { Ingest } from "../ingest/ingest.js";

const MOST_NAMED = 3;
/** Versions that an error lists if none is similar, the last ones in order. */
const MOST_LISTED = 5;
/** A shorter part of a name is in many names. */
const SHORTEST_PART = 3;

export class KnownNames {
  readonly #store: Pick<Store, "serviceVersions">;
  readonly #ingest: Pick<Ingest, "flush">;

  constructor(store: Pick<Store, "serviceVersions">, ingest: Pick<Ingest, "flush">) {
    this.#store = store;
    this.#ingest = ingest;
  }

  /** Throws TM-E014 if no process of this service is stored, or none of this version of it. */
  async mustKnow(service: string, version?: string): Promise<void> {
    if (unknownIn(await this.#store.serviceVersions(), service, version) === null) {
      return;
    }
    // It may have been acknowledged a moment ago.
    await this.#ingest.flush();
    const unknown = unknownIn(await this.#store.serviceVersions(), service, version);
    if (unknown !== null) {
      throw unknown;
    }
  }

  /** What is unknown of the service and the version that labels name, with similar names; null: neither is unknown. */
  async unknownOf(matchers: readonly LabelMatcher[]): Promise<TidemarkError | null> {
    const namedBy = (label: string) =>
      matchers.find(({ name, operator }) => name === label && operator === "=")?.value;
    const service = namedBy("service_name");
    return service === undefined
      ? null
      : unknownIn(await this.#store.serviceVersions(), service, namedBy("version"));
  }
}

function unknownIn(
  known: ReadonlyMap<string, readonly string[]>,
  service: string,
  version: string | undefined,
): TidemarkError | null {
  const versions = known.get(service);
  if (versions === undefined) {
    const list = "list them: tidemark fleet services --since 30d";
    return nothingThere(
      `no service is called ${oneLine(service)}`,
      suggestion(service, [...known.keys()]) || list,
    );
  }
  if (version === undefined || versions.includes(version)) {
    return null;
  }
  const named = versions.filter((name) => name !== "").map((name) => oneLine(name));
  const last = named.slice(-MOST_LISTED).join(", ");
  const list =
    named.length === 0
      ? "its processes name no version"
      : `${named.length > MOST_LISTED ? "its last versions" : "its versions"}: ${last}`;
  return nothingThere(
    `no process of ${oneLine(service)} has the version ${oneLine(version) || "''"}`,
    suggestion(version, named) || list,
  );
}

/** "did you mean checkout or checkout-eu?"; "" if nothing is similar. */
function suggestion(word: string, names: readonly string[]): string {
  const wanted = word.toLowerCase();
  const parts = names.filter(
    (name) => wanted.length >= SHORTEST_PART && name.toLowerCase().includes(wanted),
  );
  // "checkout@42" where only a service is expected.
  const [service] = word.split("@");
  const before = names.filter((name) => name === service);
  const near = [...new Set([...before, ...nearNames(word, names), ...parts])];
  const named = near.slice(0, MOST_NAMED).map((name) => oneLine(name));
  return named.length === 0 ? "" : `did you mean ${named.join(" or ")}?`;
}
