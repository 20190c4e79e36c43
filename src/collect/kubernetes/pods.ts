/**
 * What the API server reports about the pods of a node, by container id and by pod uid.
 * Source: https://kubernetes.io/docs/reference/kubernetes-api/workload-resources/pod-v1/
 */
import { z } from "zod";
import type { ContainerPlace } from "../../linux/index.js";
import type { Millis } from "../../model/base/units.js";
import type { PodJson } from "../../model/documents/action_document.js";
import { joinedIdentity, type ServiceIdentity } from "../../model/wire/identity.js";

const text = z.string();
const STATUSES = z
  .array(z.object({ name: text, containerID: text.optional() }))
  .nullish()
  .transform((all) => all ?? []);
const CONTAINERS = z
  .array(z.object({ name: text, image: text.optional() }))
  .nullish()
  .transform((all) => all ?? []);

/** The parts of a pod that are used. */
const POD = z.object({
  metadata: z.object({
    name: text,
    namespace: text,
    uid: text,
    labels: z.record(text, text).nullish(),
    annotations: z.record(text, text).nullish(),
    ownerReferences: z
      .array(z.object({ kind: text, name: text, controller: z.boolean().nullish() }))
      .nullish(),
  }),
  spec: z.object({
    containers: CONTAINERS,
    initContainers: CONTAINERS,
    ephemeralContainers: CONTAINERS,
  }),
  status: z
    .object({
      containerStatuses: STATUSES,
      initContainerStatuses: STATUSES,
      ephemeralContainerStatuses: STATUSES,
    })
    .nullish(),
});

/** What a pod's metadata says about the processes of one of its containers; unknown parts are left out. */
export interface PodFacts {
  /** undefined: its uid is unknown. */
  readonly pod: PodJson | undefined;
  /** Where it runs. The API server knows this, whatever the program's environment claims. */
  readonly place: Partial<ServiceIdentity>;
  /** Names that apply if the environment declares none. */
  readonly names: Partial<ServiceIdentity>;
}

interface KnownPod {
  readonly uids: readonly string[];
  readonly facts: PodFacts;
  readonly byContainer: ReadonlyMap<string, PodFacts>;
  /** When it was deleted; null while it exists. */
  deletedMs: Millis | null;
}

/** Labels that controllers add to distinguish pods; they do not describe the program. */
const OF_CONTROLLERS =
  /^(?:pod-template-hash|controller-revision-hash|pod-template-generation|controller-uid|job-name|(?:batch|statefulset|apps)\.kubernetes\.io\/.*)$/;
/** A deleted pod stays known for this time, because its last moment may still be diagnosed. */
const KEPT_MS: Millis = 600_000;

export class Pods {
  readonly #byUid = new Map<string, KnownPod>();
  /** Changes when a pod does. */
  revision = 0;

  /** All pods that exist now; those that are not among them were deleted. */
  replace(objects: readonly unknown[], nowMs: Millis): void {
    const listed = new Set(objects.flatMap((one) => this.put(one) ?? []));
    for (const [uid, pod] of this.#byUid) {
      if (!listed.has(uid)) {
        pod.deletedMs ??= nowMs;
      }
    }
    this.#forget(nowMs);
  }

  /** @returns the pod's uid; null for an object that is no pod */
  put(object: unknown): string | null {
    const { success, data } = POD.safeParse(object);
    if (!success) {
      return null;
    }
    this.#byUid.set(data.metadata.uid, knownPod(data));
    this.revision++;
    return data.metadata.uid;
  }

  delete(object: unknown, nowMs: Millis): void {
    const pod = this.#byUid.get(this.put(object) ?? "");
    if (pod !== undefined) {
      pod.deletedMs = nowMs;
    }
    this.#forget(nowMs);
  }

  /**
   * Of the outermost container that the API server knows. A process may create control groups below its container's,
   * under any name, so an inner name proves nothing.
   */
  factsOf(places: readonly ContainerPlace[]): PodFacts | null {
    for (const { id, pod } of places) {
      for (const known of this.#byUid.values()) {
        const facts = known.byContainer.get(id);
        if (facts !== undefined || (pod !== "" && known.uids.includes(pod))) {
          return facts ?? known.facts;
        }
      }
    }
    return null;
  }

  get size(): number {
    return this.#byUid.size;
  }

  #forget(nowMs: Millis): void {
    for (const [uid, { deletedMs }] of this.#byUid) {
      if (deletedMs !== null && nowMs - deletedMs > KEPT_MS) {
        this.#byUid.delete(uid);
      }
    }
  }
}

function knownPod({ metadata, spec, status }: z.infer<typeof POD>): KnownPod {
  const labels = metadata.labels ?? {};
  const workload = workloadOf(metadata);
  const images = new Map(
    [...spec.containers, ...spec.initContainers, ...spec.ephemeralContainers].map(
      ({ name, image = "" }) => [name, image],
    ),
  );
  const { namespace, name, uid } = metadata;
  const factsFor = (container: string): PodFacts => ({
    pod: { namespace, name, uid },
    place: {
      namespace,
      pod: name,
      ...(workload === "" ? {} : { workload }),
      ...(container === "" ? {} : { container }),
    },
    names: {
      service: labels["app.kubernetes.io/name"] || workload,
      version: labels["app.kubernetes.io/version"] || imageTag(images.get(container) ?? ""),
      labels: Object.fromEntries(
        Object.entries(labels).filter(([name]) => !OF_CONTROLLERS.test(name)),
      ),
    },
  });
  const statuses = [
    ...(status?.containerStatuses ?? []),
    ...(status?.initContainerStatuses ?? []),
    ...(status?.ephemeralContainerStatuses ?? []),
  ];
  // A static pod's groups have the uid that kubelet gave it, not the one of the object that mirrors it.
  const mirrored = metadata.annotations?.["kubernetes.io/config.mirror"];
  return {
    uids: mirrored === undefined ? [metadata.uid] : [metadata.uid, mirrored],
    facts: factsFor(""),
    byContainer: new Map(
      statuses.flatMap(({ name, containerID = "" }) => {
        const id = containerID.slice(containerID.indexOf("://") + 3);
        return containerID === "" ? [] : [[id, factsFor(name)] as const];
      }),
    ),
    deletedMs: null,
  };
}

/** The Deployment, StatefulSet, DaemonSet, CronJob, ... that the pod belongs to; "" for a pod of its own. */
function workloadOf({ ownerReferences, labels }: z.infer<typeof POD>["metadata"]): string {
  const owner = ownerReferences?.find(({ controller }) => controller === true);
  if (owner === undefined || owner.kind === "Node") {
    return "";
  }
  // A Deployment's ReplicaSet is named after it and the hash; a CronJob's Job after it and the minute of its start.
  const hash = labels?.["pod-template-hash"];
  if (owner.kind === "ReplicaSet" && hash !== undefined && owner.name.endsWith(`-${hash}`)) {
    return owner.name.slice(0, -hash.length - 1);
  }
  return owner.kind === "Job" ? owner.name.replace(/-\d{8,}$/, "") : owner.name;
}

/** "2.1" of "registry:5000/shop:2.1@sha256:..."; "" without a tag, or if the tag is "latest". */
function imageTag(image: string): string {
  const name = image.slice(image.lastIndexOf("/") + 1).replace(/@.*$/, "");
  const tag = name.includes(":") ? name.slice(name.indexOf(":") + 1) : "";
  return tag === "latest" ? "" : tag;
}

/** The identity of a process in a pod; unchanged if nothing is known about its pod. */
export function identityInPod(
  { declared, name }: { readonly declared: ServiceIdentity; readonly name: string },
  { place, names }: Pick<PodFacts, "place" | "names">,
): ServiceIdentity {
  return joinedIdentity([place, declared, names, { service: name }]);
}
