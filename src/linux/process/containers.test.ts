/** The forms in which runtimes and cgroup drivers name containers. */
import { describe, expect, test } from "vitest";
import { containerOf, containersIn, unitOf } from "./containers.js";

const id = "0123456789abcdef".repeat(4);
const inner = "f".repeat(64);
const uid = "11111111-2222-3333-4444-555555555555";
const uid_ = uid.replaceAll("-", "_");
const fixed = "0123456789abcdef0123456789abcdef";
const slices = "/kubepods.slice/kubepods-burstable.slice";

describe("a container of a pod", () => {
  test.each([
    [
      "containerd, systemd",
      `0::${slices}/kubepods-burstable-pod${uid_}.slice/cri-containerd-${id}.scope`,
    ],
    ["containerd, cgroupfs", `0::/kubepods/burstable/pod${uid}/${id}`],
    ["CRI-O, systemd", `0::${slices}/kubepods-burstable-pod${uid_}.slice/crio-${id}.scope`],
    [
      "CRI-O, the group below",
      `0::${slices}/kubepods-burstable-pod${uid_}.slice/crio-${id}.scope/container`,
    ],
    ["CRI-O, cgroupfs", `0::/kubepods/besteffort/pod${uid}/crio-${id}`],
    ["Docker, systemd", `0::/kubepods.slice/kubepods-pod${uid_}.slice/docker-${id}.scope`],
    ["Docker, cgroupfs", `0::/kubepods/pod${uid}/${id}`],
    [
      "guaranteed, systemd",
      `0::/kubepods.slice/kubepods-pod${uid_}.slice/cri-containerd-${id}.scope`,
    ],
    [
      "drivers that differ",
      `0::/system.slice/containerd.service/kubepods-burstable-pod${uid_}.slice:cri-containerd:${id}`,
    ],
    ["version 1", `9:name=systemd:/\n4:memory:/kubepods/burstable/pod${uid}/${id}\n0::/\n`],
    [
      "both versions",
      `4:memory:/kubepods/burstable/pod${uid}/${id}\n0::/kubepods/burstable/pod${uid}/${id}\n`,
    ],
    ["a systemd inside", `0::/kubepods/pod${uid}/${id}/system.slice/app.service`],
    [
      "seen from another container",
      `0::/../../kubepods-burstable-pod${uid_}.slice/cri-containerd-${id}.scope`,
    ],
    ["seen from the same pod", `0::/../../pod${uid}/${id}`],
    [
      "another cgroup root of kubelet",
      `0::/kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-pod${uid_}.slice/cri-containerd-${id}.scope`,
    ],
  ])("%s", (_, groups) => {
    expect(containersIn(groups)).toEqual([{ id, pod: uid }]);
    expect(containerOf(groups)).toBe(id);
    expect(unitOf(groups)).toBe("");
  });

  test("a static pod has a uid of 32 digits", () => {
    expect(
      containersIn(`0::${slices}/kubepods-burstable-pod${fixed}.slice/crio-${id}.scope`),
    ).toEqual([{ id, pod: fixed }]);
    expect(containersIn(`0::/kubepods/burstable/pod${fixed}/${id}`)).toEqual([{ id, pod: fixed }]);
  });

  test("a pod's own group", () => {
    const groups = `0::/kubepods/besteffort/pod${uid}\n`;
    expect(containersIn(groups)).toEqual([{ id: "", pod: uid }]);
    expect(containerOf(groups)).toBe(uid);
  });

  test("the monitor of a container runs outside of it", () => {
    const monitor = `0::${slices}/kubepods-burstable-pod${uid_}.slice/crio-conmon-${id}.scope`;
    expect(containersIn(monitor)).toEqual([{ id: "", pod: uid }]);
    expect(containersIn(`0::/machine.slice/libpod-conmon-${id}.scope`)).toEqual([]);
  });
});

describe("a container outside Kubernetes", () => {
  test.each([
    ["Docker, systemd", `0::/system.slice/docker-${id}.scope`],
    ["Docker, cgroupfs, version 1", `5:memory:/docker/${id}\n4:cpu:/docker/${id}\n`],
    [
      "Docker without root",
      `0::/user.slice/user-1000.slice/user@1000.service/user.slice/docker-${id}.scope`,
    ],
    ["Podman", `0::/machine.slice/libpod-${id}.scope/container`],
    [
      "Podman without root",
      `0::/user.slice/user-1000.slice/user@1000.service/user.slice/libpod-${id}.scope`,
    ],
    ["nerdctl", `0::/system.slice/nerdctl-${id}.scope`],
    ["containerd, cgroupfs", `0::/default/${id}`],
  ])("%s", (_, groups) => {
    expect(containersIn(groups)).toEqual([{ id, pod: "" }]);
  });

  test.each([
    ["0::/lxc.payload.web1/init.scope\n", "web1"],
    ["0::/lxc/web1\n", "web1"],
    ["0::/machine.slice/machine-web2.scope\n", "web2"],
    ["0::/machine.slice/machine-my\\x2dweb.scope/payload\n", "my-web"],
    ["0::/user.slice/user-1000.slice/session-2.scope\n", ""],
    [`0::/build/${"f".repeat(63)}\n`, ""],
    [`0::/build/${"f".repeat(65)}\n`, ""],
    ["0::/podcast/pod1\n", ""],
    ["", ""],
    ["rubbish", ""],
  ])("%j", (groups, expected) => {
    expect(containerOf(groups)).toBe(expected);
  });
});

describe("nested containers, outermost first", () => {
  test.each([
    ["kind", `0::/docker/${id}/kubelet/kubepods/burstable/pod${uid}/${inner}`, uid],
    [
      "kind, systemd",
      `0::/system.slice/docker-${id}.scope/kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-pod${uid_}.slice/cri-containerd-${inner}.scope`,
      uid,
    ],
    ["Docker in Docker", `0::/docker/${id}/docker/${inner}`, ""],
  ])("%s", (_, groups, pod) => {
    expect(containersIn(groups)).toEqual([
      { id, pod: "" },
      { id: inner, pod },
    ]);
    expect(containerOf(groups)).toBe(inner);
  });

  test("Docker in a pod: what the container names inside itself comes after the pod's own container", () => {
    const groups = `0::/kubepods/pod${uid}/${id}/docker/${inner}`;
    expect(containersIn(groups)[0]).toEqual({ id, pod: uid });
  });
});

test.each([
  ["0::/system.slice/gunicorn.service\n", "gunicorn"],
  ["0::/system.slice/system-shop.slice/shop@eu.service\n", "shop@eu"],
  ["0::/system.slice/my\\x2dshop.service\n", "my-shop"],
  [
    "1:name=systemd:/system.slice/gunicorn.service\n4:memory:/\n0::/system.slice/gunicorn.service\n",
    "gunicorn",
  ],
  ["0::/user.slice/user-1000.slice/user@1000.service/app.slice/jupyter.service\n", "jupyter"],
  ["0::/user.slice/user-1000.slice/user@1000.service/init.scope\n", ""],
  ["0::/user.slice/user-1000.slice/session-2.scope\n", ""],
  ["0::/system.slice/ssh.service\n", ""],
  ["0::/system.slice/cron.service\n", ""],
  ["0::/system.slice/docker.service\n", ""],
  ["0::/init.scope\n", ""],
  ["0::/.service\n", ""],
  [`0::/system.slice/docker-${id}.scope/system.slice/app.service\n`, ""],
])("the unit in %j is %j", (groups, unit) => {
  expect(unitOf(groups)).toBe(unit);
});
