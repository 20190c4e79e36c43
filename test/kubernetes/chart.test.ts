/** The Helm chart: rendered by Helm with each switch, and checked with the schemas of three versions of the API. */
import { spawn, spawnSync } from "node:child_process";
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import { parse, stringify } from "yaml";
import { readPolicy } from "../../src/collect/index.js";
import { present } from "../../src/model/base/present.js";
import { readConfig } from "../../src/server/config.js";
import { anyInterpreter, environment, isRoot } from "../environment.js";
import {
  open,
  plainEnvironment,
  removeScratch,
  repository,
  scratch,
  tidemark,
  until,
} from "../run.js";
import { LEAK, stopped } from "../watch/watched.js";
import { CHART, helm, render, renderText, SWITCHES, theOne } from "./chart.js";

afterAll(removeScratch);

/** A workload after `kubectl patch` with the chart's patch: lists are merged by name. */
function patchedDeployment() {
  const map = render(SWITCHES.sidecars).find(
    ({ kind, metadata }) => kind === "ConfigMap" && metadata.namespace === "shop",
  );
  const { spec, metadata } = parse(present(map).data["patch.yaml"]).spec.template;
  return {
    apiVersion: "apps/v1",
    kind: "Deployment",
    metadata: { name: "checkout", namespace: "shop" },
    spec: {
      selector: { matchLabels: metadata.labels },
      template: {
        metadata,
        spec: {
          ...spec,
          containers: [{ name: "app", image: "app:1" }, ...spec.containers],
        },
      },
    },
  };
}

const nulls = (labels: object) =>
  Object.fromEntries(Object.keys(labels).map((name) => [name, null]));

/** The oldest that the chart allows with schemas here, one with the newer way to set AppArmor profiles, the newest. */
const VERSIONS = ["1.25", "1.31", "1.37"];

describe.skipIf(environment.helm === null)("the chart", () => {
  test("helm finds no fault in it", () => {
    expect(helm("lint", "--strict", CHART)).toMatchObject({ status: 0 });
  });

  test.skipIf(environment.schemasPython === null).each(VERSIONS)(
    "with each switch, it has the form that Kubernetes %s expects",
    (version) => {
      const folder = scratch();
      const files = Object.entries(SWITCHES).map(([name, words]) => {
        const file = join(folder, `${name.replaceAll(" ", "-")}.yaml`);
        writeFileSync(file, renderText(words, `${version}.0`));
        return file;
      });
      const sidecar = join(folder, "sidecar.yaml");
      const page = readFileSync(join(repository, "docs/kubernetes.md"), "utf8");
      writeFileSync(
        sidecar,
        present(/```yaml\n(apiVersion: v1\nkind: Pod\n[\s\S]*?)```/.exec(page)?.[1]),
      );
      const check = ["-m", "kubernetes_validate", "--strict", "-k", version];
      const patched = join(folder, "patched.yaml");
      writeFileSync(patched, stringify(patchedDeployment()));
      const python = present(environment.schemasPython);
      const { status, stdout, stderr } = spawnSync(python, [...check, ...files, sidecar, patched], {
        encoding: "utf8",
      });
      expect(`${stdout}${stderr}`).not.toMatch(/ERROR|WARN/);
      expect(status).toBe(0);
      expect(`${stdout}${stderr}`.match(/ passed for resource /g)?.length).toBeGreaterThan(100);
      writeFileSync(sidecar, readFileSync(sidecar, "utf8").replace("containers:", "container:"));
      expect(spawnSync(python, [...check, sidecar]).status).not.toBe(0);
    },
  );

  test.each(Object.entries(SWITCHES))("%s: Tidemark accepts its own settings", (_, words) => {
    const folder = scratch();
    for (const { kind, metadata, data } of render(words)) {
      for (const [name, text] of Object.entries(kind === "ConfigMap" ? data : {})) {
        if (name !== "patch.yaml" && name !== "remove.yaml") {
          writeFileSync(
            join(folder, `${metadata.namespace}-${metadata.name}-${name}`),
            String(text),
          );
        }
      }
    }
    const files = readdirSync(folder);
    expect(files.length).toBeGreaterThan(0);
    for (const name of files) {
      const path = join(folder, name);
      const settings = name.endsWith("policy.yaml") ? readPolicy(path) : readConfig(path);
      expect(settings).toBeDefined();
    }
  });

  test("from outside: no rule loads the agent, and programs without a rule do not get it", () => {
    const { data } = theOne(render(SWITCHES["from outside"]), "ConfigMap", "-policy");
    const path = join(scratch(), "policy.yaml");
    writeFileSync(path, data["policy.yaml"]);
    expect(readPolicy(path).select.map(({ match, watch }) => [match, watch])).toEqual([
      [{ service: "shop" }, "outside"],
      [{ service: "db" }, "never"],
      [{}, "outside"],
    ]);
  });

  test("with healing, the server has the namespaces, and collectors a token of scope act", () => {
    const words = ["--set", "server.config.actions.service_limit=2/h"];
    const objects = render([...present(SWITCHES.healing), ...words]);
    const settings = (end: string, file: string) =>
      parse(theOne(objects, "ConfigMap", end).data[file]);
    expect(settings("-serve", "serve.yaml").actions).toEqual({
      ...{ service_limit: "2/h", evict_namespaces: ["shop", "search"] },
    });
    const { volumes, containers } = theOne(objects, "DaemonSet").spec.template.spec;
    const { mountPath } = containers[0].volumeMounts.find(({ name = "" }) => name === "token");
    const { items } = volumes.find(({ name = "" }) => name === "token").secret;
    const { server } = settings("-policy", "policy.yaml");
    expect(items.map(({ path = "" }) => `${mountPath}/${path}`)).toEqual([
      server.token_file,
      server.action_token_file,
    ]);
  });

  test("without healing it may only read pods; with it, evict them in the named namespaces", () => {
    const permissions = (words: readonly string[] = []) =>
      render(words)
        .filter(({ kind }) => kind.endsWith("Role"))
        .flatMap(({ kind, metadata, rules }) =>
          rules.map((rule: { resources: string[]; verbs: string[] }) =>
            [kind, metadata.namespace ?? "", rule.resources, rule.verbs].join(" "),
          ),
        );
    const reading = "ClusterRole  pods get,list,watch";
    expect(permissions()).toEqual([reading]);
    expect(permissions(SWITCHES["without pod metadata"])).toEqual([]);
    expect(permissions(SWITCHES.healing)).toEqual([
      reading,
      ...["shop", "search"].flatMap((name) => [
        `Role ${name} pods get,list`,
        `Role ${name} pods/eviction create`,
      ]),
    ]);
    const account = (words?: readonly string[]) => {
      const { spec } = theOne(render(words), "StatefulSet").spec.template;
      return [spec.serviceAccountName, spec.automountServiceAccountToken];
    };
    expect(account()).toEqual(["tidemark-server", false]);
    expect(account(SWITCHES.healing)).toEqual(["tidemark-healing", true]);
  });

  test("a sidecar is unprivileged, has its policy and its token, and may connect to the server", () => {
    const objects = render(SWITCHES.sidecars);
    expect(objects.filter(({ kind }) => kind === "DaemonSet")).toEqual([]);
    expect(objects.flatMap(({ metadata }) => metadata.namespace ?? [])).toEqual(
      expect.arrayContaining(["shop", "search"]),
    );
    const { spec, metadata } = patchedDeployment().spec.template;
    expect(spec.containers.map(({ name }: { name: string }) => name)).toEqual(["app", "tidemark"]);
    const [, sidecar] = spec.containers;
    expect(sidecar.securityContext).toMatchObject({
      runAsUser: 1234,
      allowPrivilegeEscalation: false,
      readOnlyRootFilesystem: true,
      capabilities: { drop: ["ALL"] },
    });
    expect(sidecar.env).toEqual(
      ["NAME", "NAMESPACE", "UID"].map((field) => ({
        name: `TIDEMARK_POD_${field}`,
        valueFrom: { fieldRef: { fieldPath: `metadata.${field.toLowerCase()}` } },
      })),
    );
    expect(spec.shareProcessNamespace).toBe(true);
    expect(spec.hostPID).toBeUndefined();
    const mounted = sidecar.volumeMounts.map(({ name }: { name: string }) => name);
    expect(spec.volumes.map(({ name }: { name: string }) => name)).toEqual(mounted);
    expect(JSON.stringify(spec.volumes)).toContain('"secretName":"mine"');
    const admitted = theOne(objects, "NetworkPolicy", "-server").spec.ingress[0].from;
    expect(admitted).toContainEqual({
      namespaceSelector: {
        matchExpressions: [
          { key: "kubernetes.io/metadata.name", operator: "In", values: ["shop", "search"] },
        ],
      },
      podSelector: { matchLabels: metadata.labels },
    });
  });

  test("the second patch removes all that the first one adds", () => {
    const { data } = present(
      render(SWITCHES.sidecars).find(
        ({ kind, metadata }) => kind === "ConfigMap" && metadata.namespace === "shop",
      ),
    );
    const [added, removed] = ["patch.yaml", "remove.yaml"].map(
      (name) => parse(data[name]).spec.template,
    );
    const deleted = ({ name }: { name: string }) => ({ name, $patch: "delete" });
    expect(removed).toEqual({
      metadata: { labels: nulls(added.metadata.labels) },
      spec: {
        shareProcessNamespace: null,
        containers: added.spec.containers.map(deleted),
        volumes: added.spec.volumes.map(deleted),
      },
    });
    expect(Object.keys(removed.spec)).toEqual(Object.keys(added.spec));
  });

  test("nothing but the collector is privileged, and no root is writable", () => {
    for (const words of Object.values(SWITCHES)) {
      for (const { kind, spec } of render(words)) {
        const pod = spec?.template?.spec;
        for (const { securityContext, resources, livenessProbe } of pod?.containers ?? []) {
          expect(securityContext).toMatchObject({
            allowPrivilegeEscalation: false,
            readOnlyRootFilesystem: true,
            capabilities: { drop: ["ALL"] },
          });
          expect(securityContext.privileged).toBeUndefined();
          expect(securityContext.capabilities.add === undefined).toBe(kind === "StatefulSet");
          expect([resources.requests.memory, resources.limits.memory]).not.toContain(undefined);
          expect(livenessProbe).toBeDefined();
        }
      }
    }
  });

  test.each([
    ["collector.mode=sometimes", "/collector/mode"],
    ["healing.enabled=true", "/healing/namespaces"],
    ["sidecar.enabled=true", "sidecar"],
    ["sidecar.runAsUser=root", "/sidecar/runAsUser"],
    ["server.config.listen=0.0.0.0:1", "/server/config"],
    ["server.replicas=3", "replicas"],
    ["tokens.existingSecret=", "/tokens/existingSecret"],
    ["server.enabled=false", "set collector.serverUrl, or enable the server"],
  ])("%s is refused", (setting, place) => {
    const { status, output } = helm(
      "template",
      "t",
      CHART,
      "--kube-version",
      "1.34.0",
      "--set",
      setting,
    );
    expect([status, output]).toEqual([1, expect.stringContaining(place)]);
  });

  test("the page names every value", () => {
    const page = readFileSync(join(CHART, "README.md"), "utf8");
    const values = parse(readFileSync(join(CHART, "values.yaml"), "utf8"));
    const names = Object.entries(values).flatMap(([name, value]) =>
      value !== null && typeof value === "object" && !Array.isArray(value)
        ? Object.keys(value)
        : [name],
    );
    expect(names.length).toBeGreaterThan(20);
    for (const name of names) {
      expect(page).toContain(name);
    }
  });

  test.skipIf(!isRoot || environment.tools.setpriv === null).each([
    ["default", true],
    ["from outside", false],
  ])("%s: its capabilities are enough for another user's program", async (name, agent) => {
    const { spec } = theOne(render(SWITCHES[name]), "DaemonSet").spec.template;
    const { add } = spec.containers[0].securityContext.capabilities;
    const bounding = ["-all", ...add.map((one: string) => `+${one.toLowerCase()}`)].join(",");
    const folder = scratch();
    const recordings = join(folder, "recordings");
    mkdirSync(recordings);
    const service = `chart-${process.pid}`;
    const policy = join(folder, "policy.yaml");
    const watch = agent ? "agent" : "outside";
    writeFileSync(
      policy,
      `defaults: {warm_up: 1s}\nselect:\n  - {match: {service: ${service}}, watch: ${watch}}\n  - {match: {}, watch: never}\n`,
    );
    const user = ["--reuid=65534", "--regid=65534", "--clear-groups"];
    const python = environment.interpreters.find(({ path }) => path.startsWith("/usr/"))?.path;
    const program = spawn("setpriv", [...user, python ?? anyInterpreter().path, "-c", LEAK], {
      env: { ...process.env, TIDEMARK_SERVICE: service },
      stdio: "ignore",
    });
    const child = spawn(
      "setpriv",
      ["--bounding-set", bounding, tidemark, "watch", "--config", policy, "--folder", recordings],
      { env: plainEnvironment(folder), stdio: ["ignore", "ignore", "pipe"] },
    );
    let said = "";
    child.stderr.on("data", (chunk: Buffer) => {
      said += chunk.toString();
    });
    const recorded = () =>
      readdirSync(recordings).flatMap((file) =>
        file.endsWith(".tidemark") ? [open(join(recordings, file))] : [],
      );
    try {
      await until(() =>
        agent
          ? said.includes("recording it with the agent") &&
            recorded().some(({ snapshots }) => snapshots.length > 1)
          : readdirSync(recordings).some((file) => file.endsWith(".tidemark")),
      );
      expect(await stopped(child)).toBe(0);
      expect(said).not.toContain("could not be attached");
      expect(recorded().some(({ series }) => (series[0]?.timesMs.length ?? 0) > 0)).toBe(true);
      expect(program.exitCode).toBeNull();
    } finally {
      program.kill("SIGKILL");
      child.kill("SIGKILL");
    }
  });
});
