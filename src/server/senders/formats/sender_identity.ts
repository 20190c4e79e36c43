/** Converts the labels of a sender's profiles to an identity within the fleet. */
import { badUsage, tooLarge } from "../../../model/errors/errors.js";
import {
  LONGEST_LABEL_NAME,
  LONGEST_LABEL_VALUE,
  MOST_LABELS,
  type ServiceIdentity,
} from "../../../model/wire/identity.js";
import type { ReceivedProfile } from "./received_profile.js";

type Part = Exclude<keyof ServiceIdentity, "labels"> | "host" | "pid";

/** Names of labels that are parts of an identity, the most specific first. */
const PARTS: Readonly<Record<Part, readonly string[]>> = {
  service: ["service_name", "service.name", "service"],
  version: ["version", "service.version", "service_version"],
  env: ["env", "deployment.environment.name", "deployment.environment", "deployment_environment"],
  namespace: ["namespace", "k8s.namespace.name", "kube_namespace"],
  workload: ["workload", "k8s.deployment.name", "k8s.statefulset.name", "kube_deployment"],
  pod: ["pod", "k8s.pod.name", "pod_name"],
  container: ["container", "k8s.container.name", "container_name", "kube_container_name"],
  host: ["host", "host.name", "hostname"],
  pid: ["pid", "process.pid", "process_id"],
};
const PART_OF_NAME = new Map(
  Object.entries(PARTS).flatMap(([part, names]) => names.map((name) => [name, part as Part])),
);
/** Labels of the profile itself, not of its sender. */
const UNUSED = new Set(["__name__", "__profile_type__", "__type__", "__unit__", "__delta__"]);

/** Throws TidemarkError for labels beyond a limit, and if no label names the service. */
export function senderIdentity(
  labels: Iterable<readonly [string, string]>,
): Pick<ReceivedProfile, "identity" | "host" | "pid"> {
  const given = new Map<string, string>();
  for (const [name, value] of labels) {
    if (name.length === 0 || name.length > LONGEST_LABEL_NAME) {
      throw tooLarge("the name of a label", `label-name = 1 to ${LONGEST_LABEL_NAME} characters`);
    }
    // The format of recordings refuses this name, so it is refused here, before anything of the request is stored.
    if (name === "__proto__") {
      throw badUsage("no label can have the name __proto__", "rename the label");
    }
    if (value.length > LONGEST_LABEL_VALUE) {
      throw tooLarge(
        `the value of the label ${name.slice(0, 60)}`,
        `label-value = ${LONGEST_LABEL_VALUE}`,
      );
    }
    if (!UNUSED.has(name) && value !== "") {
      given.set(name, value);
    }
  }
  const part = (name: Part) =>
    PARTS[name].map((label) => given.get(label)).find((value) => value !== undefined) ?? "";
  const free = [...given].filter(([name]) => !PART_OF_NAME.has(name)).sort(byName);
  if (free.length > MOST_LABELS) {
    throw tooLarge("the number of labels", `labels = ${MOST_LABELS}`);
  }
  const service = part("service");
  if (service === "") {
    throw badUsage("no label names the service of the profile", "set the label service_name");
  }
  return {
    identity: {
      service,
      version: part("version"),
      env: part("env"),
      namespace: part("namespace"),
      workload: part("workload"),
      pod: part("pod"),
      container: part("container"),
      labels: Object.fromEntries(free),
    },
    host: part("host"),
    pid: /^\d{1,9}$/.test(part("pid")) ? Number(part("pid")) : 0,
  };
}

function byName([a]: readonly [string, string], [b]: readonly [string, string]): number {
  return a < b ? -1 : 1;
}
