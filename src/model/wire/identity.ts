/**
 * The identity of a recorded program within a fleet: its service, version and labels. It travels in the first frame of
 * a recording.
 */

/** Unknown parts are "". */
export interface ServiceIdentity {
  readonly service: string;
  readonly version: string;
  readonly env: string;
  readonly namespace: string;
  readonly workload: string;
  readonly pod: string;
  readonly container: string;
  /** Free labels, at most {@link MOST_LABELS}. */
  readonly labels: Readonly<Record<string, string>>;
}

export const MOST_LABELS = 30;
/** Bounds of names and values, in characters. */
export const LONGEST_LABEL_NAME = 1024;
export const LONGEST_LABEL_VALUE = 2048;

/** Keys of OTEL_RESOURCE_ATTRIBUTES that are parts of an identity; all others become labels. */
const ATTRIBUTES: Readonly<Record<string, Exclude<keyof ServiceIdentity, "labels">>> = {
  "service.name": "service",
  "service.version": "version",
  "deployment.environment": "env",
  "deployment.environment.name": "env",
  "k8s.namespace.name": "namespace",
  "k8s.deployment.name": "workload",
  "k8s.statefulset.name": "workload",
  "k8s.daemonset.name": "workload",
  "k8s.pod.name": "pod",
  "k8s.container.name": "container",
};

/** The first of these variables that is set names the part; OTEL_RESOURCE_ATTRIBUTES comes after OTEL_SERVICE_NAME. */
const VARIABLES = {
  service: ["TIDEMARK_SERVICE", "OTEL_SERVICE_NAME"],
  version: ["TIDEMARK_VERSION"],
  env: ["TIDEMARK_ENV"],
} as const;
const DATADOG_VARIABLES = { service: "DD_SERVICE", version: "DD_VERSION", env: "DD_ENV" } as const;

/** The identity from the program's environment variables; `name` if they name no service. */
export function identityOf(
  environment: Readonly<Record<string, string | undefined>>,
  name: string,
): ServiceIdentity {
  return joinedIdentity([declaredIdentity(environment), { service: name }]);
}

/** What the program's environment variables name. */
export function declaredIdentity(
  environment: Readonly<Record<string, string | undefined>>,
): ServiceIdentity {
  const { parts, labels } = resourceAttributes(environment.OTEL_RESOURCE_ATTRIBUTES ?? "");
  const part = (name: keyof typeof VARIABLES) =>
    VARIABLES[name].map((variable) => environment[variable]).find(isSet) ??
    parts[name] ??
    environment[DATADOG_VARIABLES[name]] ??
    "";
  return joinedIdentity([
    { ...parts, service: part("service"), version: part("version"), env: part("env"), labels },
  ]);
}

/** Each part from the first source that knows it; labels of all. */
export function joinedIdentity(sources: readonly Partial<ServiceIdentity>[]): ServiceIdentity {
  const part = (name: Exclude<keyof ServiceIdentity, "labels">) =>
    bounded(sources.map((source) => source[name]).find(isSet) ?? "");
  const labels: Record<string, string> = {};
  for (const [name, value] of sources.flatMap((source) => Object.entries(source.labels ?? {}))) {
    if (
      !Object.hasOwn(labels, name) &&
      name.length <= LONGEST_LABEL_NAME &&
      Object.keys(labels).length < MOST_LABELS
    ) {
      labels[name] = bounded(value);
    }
  }
  return {
    service: part("service"),
    version: part("version"),
    env: part("env"),
    namespace: part("namespace"),
    workload: part("workload"),
    pod: part("pod"),
    container: part("container"),
    labels,
  };
}

function isSet(value: string | undefined): value is string {
  return value !== undefined && value !== "";
}

/** "key=value,key=value" with values percent-encoded (OpenTelemetry, "Resource SDK"); malformed parts are left out. */
function resourceAttributes(text: string) {
  const parts: Partial<Record<Exclude<keyof ServiceIdentity, "labels">, string>> = {};
  const labels: Record<string, string> = {};
  for (const pair of text.split(",")) {
    const at = pair.indexOf("=");
    const key = pair.slice(0, Math.max(at, 0)).trim();
    const value = at < 0 ? "" : decoded(pair.slice(at + 1).trim());
    if (key === "" || value === "") {
      continue;
    }
    const part = Object.hasOwn(ATTRIBUTES, key) ? ATTRIBUTES[key] : undefined;
    if (part !== undefined) {
      parts[part] ??= value;
    } else {
      labels[key] = value;
    }
  }
  return { parts, labels };
}

function decoded(value: string): string {
  try {
    return decodeURIComponent(value);
  } catch {
    return value;
  }
}

function bounded(text: string): string {
  return text.slice(0, LONGEST_LABEL_VALUE);
}
