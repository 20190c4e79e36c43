/** Names of pods and containers from the API server's objects. */
import { expect, test } from "vitest";
import { declaredIdentity } from "../../model/wire/identity.js";
import { identityInPod, Pods } from "./pods.js";

const id = (digit: string) => digit.repeat(64);

function pod(name: string, more: Readonly<Record<string, unknown>> = {}, container = id("a")) {
  const { metadata = {}, ...rest } = more as { metadata?: object };
  return {
    metadata: {
      name,
      namespace: "shop",
      uid: `uid-${name}`,
      labels: { app: name, track: "canary", "pod-template-hash": "7d4b9c" },
      ownerReferences: [{ kind: "ReplicaSet", name: "checkout-7d4b9c", controller: true }],
      ...metadata,
    },
    spec: { containers: [{ name: "app", image: "registry:5000/shop/checkout:42@sha256:ab" }] },
    status: { containerStatuses: [{ name: "app", containerID: `containerd://${container}` }] },
    ...rest,
  };
}

function podsOf(...objects: object[]): Pods {
  const pods = new Pods();
  pods.replace(objects, 0);
  return pods;
}

function identity(pods: Pods, containerId: string, environment: Record<string, string> = {}) {
  const facts = pods.factsOf([{ id: containerId, pod: "" }]);
  const declared = declaredIdentity(environment);
  return facts === null ? null : identityInPod({ declared, name: "app" }, facts);
}

test("a container's pod, workload, image tag and labels", () => {
  expect(identity(podsOf(pod("checkout-1")), id("a"))).toEqual({
    service: "checkout",
    version: "42",
    env: "",
    namespace: "shop",
    workload: "checkout",
    pod: "checkout-1",
    container: "app",
    labels: { app: "checkout-1", track: "canary" },
  });
});

test("the environment names service and version, the API server the place", () => {
  const environment = {
    TIDEMARK_SERVICE: "mine",
    OTEL_RESOURCE_ATTRIBUTES:
      "service.version=7,k8s.pod.name=another,k8s.namespace.name=kube-system,track=control",
  };
  expect(identity(podsOf(pod("checkout-1")), id("a"), environment)).toMatchObject({
    service: "mine",
    version: "7",
    namespace: "shop",
    pod: "checkout-1",
    labels: { track: "control", app: "checkout-1" },
  });
  // What would be evicted.
  expect(podsOf(pod("checkout-1")).factsOf([{ id: id("a"), pod: "" }])?.pod).toEqual({
    ...{ namespace: "shop", name: "checkout-1", uid: "uid-checkout-1" },
  });
});

test.each([
  [
    { "app.kubernetes.io/name": "named", "app.kubernetes.io/version": "2.0" },
    undefined,
    "named",
    "2.0",
    "",
  ],
  [{}, { kind: "StatefulSet", name: "db" }, "db", "42", "db"],
  [{}, { kind: "Job", name: "report-29012345" }, "report", "42", "report"],
  [{}, { kind: "Job", name: "migrate-2" }, "migrate-2", "42", "migrate-2"],
  [{}, { kind: "ReplicaSet", name: "by-hand" }, "by-hand", "42", "by-hand"],
  [{}, { kind: "Node", name: "node-1" }, "app", "42", ""],
  [{}, undefined, "app", "42", ""],
])(
  "labels %j, owner %j: service %s, version %s, workload %s",
  (labels, owner, service, version, workload) => {
    const ownerReferences = owner === undefined ? [] : [{ ...owner, controller: true }];
    const found = identity(podsOf(pod("p", { metadata: { labels, ownerReferences } })), id("a"));
    expect(found).toMatchObject({ service, version, workload });
  },
);

test.each([
  ["shop", ""],
  ["shop:latest", ""],
  ["registry:5000/shop", ""],
  ["registry:5000/shop@sha256:ab", ""],
  ["shop:1.2-rc1", "1.2-rc1"],
])("the image %s has the version %j", (image, version) => {
  const one = pod("p", { spec: { containers: [{ name: "app", image }] } });
  expect(identity(podsOf(one), id("a"))?.version).toBe(version);
});

test("init and ephemeral containers, and a pod whose containers are not reported yet", () => {
  const pods = podsOf(
    pod("p", {
      spec: { containers: [{ name: "app" }], initContainers: [{ name: "init", image: "i:1" }] },
      status: {
        initContainerStatuses: [{ name: "init", containerID: `cri-o://${id("b")}` }],
        ephemeralContainerStatuses: [{ name: "debug", containerID: `docker://${id("c")}` }],
        containerStatuses: [{ name: "app" }],
      },
    }),
  );
  expect(identity(pods, id("b"))).toMatchObject({ container: "init", version: "1" });
  expect(identity(pods, id("c"))).toMatchObject({ container: "debug" });
  expect(pods.factsOf([{ id: id("d"), pod: "uid-p" }])?.place).toMatchObject({ pod: "p" });
  expect(pods.factsOf([{ id: "", pod: "" }])).toBeNull();
});

test("a static pod's groups have the uid of its mirror", () => {
  const metadata = { annotations: { "kubernetes.io/config.mirror": "0f" } };
  const pods = podsOf(pod("etcd", { metadata, status: {} }));
  expect(pods.factsOf([{ id: id("e"), pod: "0f" }])?.place.pod).toBe("etcd");
});

test("a container that names another pod's inside itself belongs to its own pod", () => {
  const pods = podsOf(pod("hostile"), pod("victim", {}, id("b")));
  const places = [
    { id: id("a"), pod: "uid-hostile" },
    { id: id("b"), pod: "uid-victim" },
  ];
  expect(pods.factsOf(places)?.place.pod).toBe("hostile");
  const unknownOuter = [
    { id: id("0"), pod: "" },
    { id: id("b"), pod: "uid-victim" },
  ];
  expect(pods.factsOf(unknownOuter)?.place.pod).toBe("victim"); // a node of kind is a container itself
});

test("a deleted pod is known for ten minutes", () => {
  const pods = podsOf(pod("a"), pod("b", {}, id("b")));
  pods.delete(pod("a"), 1_000);
  pods.replace([pod("b", {}, id("b"))], 2_000);
  expect(identity(pods, id("a"))?.pod).toBe("a");
  pods.replace([], 602_000);
  expect(identity(pods, id("a"))).toBeNull();
  expect(identity(pods, id("b"))?.pod).toBe("b");
  pods.replace([], 1_203_000);
  expect(pods.size).toBe(0);
});

test.each([
  null,
  7,
  "pod",
  {},
  { metadata: {} },
  { metadata: { name: 1, namespace: "", uid: "" } },
])("%j is no pod", (object) => {
  expect(new Pods().put(object)).toBeNull();
});
