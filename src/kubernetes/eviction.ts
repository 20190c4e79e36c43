/**
 * Evicts one pod, as far as its disruption budgets allow it:
 *
 *     GET the pod ──the same uid, and a controller that will replace it──> POST its eviction, for this uid only
 *
 * Source: https://kubernetes.io/docs/concepts/scheduling-eviction/api-eviction/
 */
import { z } from "zod";
import type { Bytes, Millis } from "../model/base/units.js";
import type { PodJson } from "../model/documents/action_document.js";
import { reasonOf } from "../model/errors/reason.js";
import { ApiError, type ApiServer, get, post, readAll } from "./api_server.js";

const IDLE_MS: Millis = 15_000;
const LARGEST_POD: Bytes = 8 << 20;
const POD = z.object({
  metadata: z.object({
    uid: z.string(),
    deletionTimestamp: z.string().nullish(),
    ownerReferences: z
      .array(z.object({ kind: z.string(), controller: z.boolean().nullish() }))
      .nullish(),
  }),
});

/** @returns "" if the pod is being evicted; otherwise why not. Rejects if that is unknown. */
export async function evictPod(
  server: ApiServer,
  pod: PodJson,
  until: AbortSignal,
): Promise<string> {
  const { namespace, name, uid } = pod;
  const path = `/api/v1/namespaces/${encodeURIComponent(namespace)}/pods/${encodeURIComponent(name)}`;
  const patience = { idleMs: IDLE_MS, until };
  try {
    const answer = await readAll(await get(server, path, patience), LARGEST_POD);
    const why = whyNot(POD.parse(JSON.parse(answer)), pod);
    if (why !== "") {
      return why;
    }
  } catch (error) {
    if (error instanceof ApiError) {
      return whyRefused(error, pod);
    }
    return error instanceof SyntaxError || error instanceof z.ZodError
      ? "the API server's answer is no pod"
      : `the API server could not be asked for the pod: ${reasonOf(error).message}`;
  }
  const object = {
    ...{ apiVersion: "policy/v1", kind: "Eviction", metadata: { name, namespace } },
    deleteOptions: { preconditions: { uid } },
  };
  try {
    (await post(server, { path: `${path}/eviction`, object }, patience)).resume();
    return "";
  } catch (error) {
    // After an error inside the API server, the pod may have been evicted.
    if (error instanceof ApiError && error.status < 500) {
      return whyRefused(error, pod);
    }
    throw error;
  }
}

function whyNot({ metadata }: z.infer<typeof POD>, pod: PodJson): string {
  const controller = metadata.ownerReferences?.find((owner) => owner.controller === true);
  if (metadata.uid !== pod.uid) {
    return whyRefused(new ApiError(409, ""), pod);
  }
  if ((metadata.deletionTimestamp ?? "") !== "") {
    return `pod ${nameOf(pod)} is being deleted already`;
  }
  if (controller === undefined) {
    return `pod ${nameOf(pod)} has no controller that would replace it`;
  }
  return controller.kind === "Node"
    ? `pod ${nameOf(pod)} is a static pod of its node, which cannot be evicted`
    : "";
}

function whyRefused({ status, message }: ApiError, pod: PodJson): string {
  const said = message === "" ? "" : `: ${message}`;
  switch (status) {
    case 401:
      return "the API server does not accept the token of its ServiceAccount";
    case 403:
      return `its ServiceAccount may not get and evict pods in namespace ${pod.namespace}: set healing.enabled and healing.namespaces of the chart${said}`;
    case 404:
      return `pod ${nameOf(pod)} is gone`;
    case 409:
      return `pod ${nameOf(pod)} is gone, and another one has its name${said}`;
    case 429:
      return /disruption budget/i.test(message)
        ? `a disruption budget forbids it now${said}`
        : `the API server is too busy now${said}`;
    default:
      return `the API server answered ${status}${said}`;
  }
}

function nameOf({ namespace, name }: PodJson): string {
  return `${namespace}/${name}`;
}
