/** Renders the Helm chart with the real program. */
import { execFileSync, spawnSync } from "node:child_process";
import { join } from "node:path";
import { parseAllDocuments } from "yaml";
import { present } from "../../src/model/base/present.js";
import { environment } from "../environment.js";
import { repository } from "../run.js";

export const CHART = join(repository, "deploy/helm/tidemark");
/** Of the machine that renders, and the tests' API server. */
export const NAMESPACE = "memory";

/** Each switch of the values, by name; the words of helm's command line. */
export const SWITCHES: Readonly<Record<string, readonly string[]>> = {
  default: [],
  "from outside": ["--set", "collector.mode=outside", "--set-json", rules()],
  "without pod metadata": ["--set", "collector.podMetadata=false"],
  "without a collector": ["--set", "collector.enabled=false"],
  "another server": [
    ...["--set", "server.enabled=false"],
    ...["--set", "collector.serverUrl=https://tidemark.internal:7443"],
  ],
  healing: ["--set", "healing.enabled=true,healing.namespaces={shop,search}"],
  sidecars: [
    ...["--set", "collector.enabled=false,sidecar.enabled=true,sidecar.namespaces={shop,search}"],
    ...["--set", "sidecar.runAsUser=1234,sidecar.tokenSecret=mine"],
  ],
  "an ingress": [
    ...["--set", "server.ingress.enabled=true,server.ingress.className=nginx"],
    ...["--set", "server.ingress.tlsSecret=tls,server.ingress.annotations.a=b"],
  ],
  "without network policies": ["--set", "networkPolicy.enabled=false"],
  "network policies": [
    ...["--set-json", 'networkPolicy.serverFrom=[{"namespaceSelector":{}}]'],
    ...["--set-json", 'networkPolicy.serverEgress=[{"ports":[{"port":9093,"protocol":"TCP"}]}]'],
    ...["--set", "networkPolicy.apiServerCidrs={10.0.0.1/32}"],
  ],
  "without a volume": ["--set", "server.persistence.enabled=false"],
  "a storage class": ["--set", "server.persistence.storageClass=fast"],
  "a folder of the node": ["--set", "collector.storage.hostPath=/var/lib/tidemark"],
  "all that pods may have": [
    ...["--set", "nameOverride=memory,image.tag=2.0,imagePullSecrets[0].name=pull"],
    ...[
      "--set",
      "collector.seLinuxOptions.type=spc_t,collector.priorityClassName=system-node-critical",
    ],
    ...["--set", "collector.podLabels.team=a,server.podLabels.team=a,collector.podAnnotations.x=y"],
    ...[
      "--set",
      "server.podAnnotations.x=y,serviceAccount.annotations.x=y,server.service.type=NodePort",
    ],
    ...["--set-json", 'server.tolerations=[{"operator":"Exists"}]'],
    ...["--set-json", 'server.affinity={"nodeAffinity":{}}'],
    ...["--set-json", 'collector.affinity={"nodeAffinity":{}}'],
  ],
};

function rules(): string {
  return `collector.policy.select=${JSON.stringify([
    { match: { service: "shop" }, agent: { share: "10%" } },
    { match: { service: "db" }, watch: "never" },
  ])}`;
}

export interface Rendered {
  readonly kind: string;
  readonly metadata: { readonly name: string; readonly namespace?: string };
  // biome-ignore lint/suspicious/noExplicitAny: any kind of object
  readonly [key: string]: any;
}

export function helm(...words: string[]): { status: number | null; output: string } {
  const { status, stdout, stderr } = spawnSync(present(environment.helm), words, {
    encoding: "utf8",
  });
  return { status, output: stdout + stderr };
}

export function renderText(words: readonly string[], version: string): string {
  const all = ["template", "tidemark", CHART, "--namespace", NAMESPACE, "--kube-version", version];
  return execFileSync(present(environment.helm), [...all, ...words], { encoding: "utf8" });
}

export function render(words: readonly string[] = [], version = "1.34.0"): Rendered[] {
  return parseAllDocuments(renderText(words, version)).map((one) => one.toJSON() as Rendered);
}

/** The only object of a kind whose name ends with this. */
export function theOne(objects: readonly Rendered[], kind: string, end = ""): Rendered {
  const found = objects.filter((one) => one.kind === kind && one.metadata.name.endsWith(end));
  if (found.length !== 1) {
    throw new Error(`${found.length} objects of kind ${kind} with a name that ends with "${end}"`);
  }
  return present(found[0]);
}
