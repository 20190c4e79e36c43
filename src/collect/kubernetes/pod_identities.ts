/**
 * The identities of processes in pods. In a DaemonSet the API server names the pods of the node; in a sidecar the
 * pod's own name comes from its environment; elsewhere identities stay as they are.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { type ApiServer, apiServerOf } from "../../kubernetes/api_server.js";
import type { ScannedProcess } from "../../linux/index.js";
import type { Millis } from "../../model/base/units.js";
import type { PodJson } from "../../model/documents/action_document.js";
import { PodWatch } from "./pod_watch.js";
import { identityInPod, type PodFacts, Pods } from "./pods.js";

export interface PodIdentitiesOptions {
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly until: AbortSignal;
  /** Why the API server's metadata is missing; "": it is available again. */
  readonly onTrouble: (why: string) => void;
  /** null: none; the default is found through the environment. */
  readonly server?: ApiServer | null;
}

/** How long the first list may delay the first scan. */
const FIRST_MS: Millis = 5_000;
/** A new pod's containers appear in the API server's answers this long after they start. */
const LATE_MS: Millis = 30_000;

export class PodIdentities {
  readonly #pods = new Pods();
  readonly #watch: PodWatch | null;
  /** Of a sidecar: the only pod whose processes it sees. */
  readonly #own: PodFacts | null;
  #identified = new WeakMap<ScannedProcess, ScannedProcess>();
  #revision = -1;

  constructor({ environment, until, onTrouble, server }: PodIdentitiesOptions) {
    const found = server === undefined ? apiServerOf(environment) : server;
    const { TIDEMARK_NODE_NAME: node = "" } = environment;
    this.#watch =
      found === null || node === ""
        ? null
        : new PodWatch({ server: found, node, pods: this.#pods, until, onTrouble });
    this.#own = ownPod(environment);
  }

  /** Resolves when the pods were listed, the list failed, or it takes long. */
  async ready(): Promise<void> {
    if (this.#watch !== null) {
      const waiting = new AbortController();
      const late = sleep(FIRST_MS, undefined, { signal: waiting.signal }).catch(() => {});
      await Promise.race([this.#watch.tried, late]);
      waiting.abort();
    }
  }

  /** The same processes with their pods' names; where no pod is known, the same array. */
  allIdentified(processes: readonly ScannedProcess[]): readonly ScannedProcess[] {
    return this.#watch === null && this.#own === null
      ? processes
      : processes.map((one) => this.#identify(one));
  }

  #identify(process: ScannedProcess): ScannedProcess {
    if (this.#revision !== this.#pods.revision) {
      this.#revision = this.#pods.revision;
      this.#identified = new WeakMap();
    }
    const known = this.#identified.get(process);
    if (known !== undefined) {
      return known;
    }
    const facts = this.#factsOf(process);
    const result =
      facts === null ? process : { ...process, identity: identityInPod(process, facts) };
    this.#identified.set(process, result);
    return result;
  }

  /** Of the API server or the pod's own names, whatever the environment of the process says. */
  podOf(process: ScannedProcess): PodJson | undefined {
    return this.#factsOf(process)?.pod;
  }

  /** The process is in a pod that the API server is about to name: its identity may change soon. */
  isLate({ containers, startedMs, identity }: ScannedProcess): boolean {
    return (
      this.#watch?.isSynced === true &&
      identity.pod === "" &&
      containers.some(({ pod }) => pod !== "") &&
      Date.now() - startedMs < LATE_MS
    );
  }

  #factsOf({ containers }: ScannedProcess): PodFacts | null {
    return this.#own ?? this.#pods.factsOf(containers);
  }

  async close(): Promise<void> {
    await this.#watch?.ended;
  }
}

/** From the variables that the sidecar's pod sets by the downward API (docs/kubernetes.md). */
function ownPod(environment: Readonly<Record<string, string | undefined>>): PodFacts | null {
  const { TIDEMARK_POD_NAME: name = "", TIDEMARK_POD_NAMESPACE: namespace = "" } = environment;
  const { TIDEMARK_POD_UID: uid = "" } = environment;
  const pod = namespace === "" || uid === "" ? undefined : { namespace, name, uid };
  return name === "" ? null : { pod, place: { pod: name, namespace }, names: {} };
}
