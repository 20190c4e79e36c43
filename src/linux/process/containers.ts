/**
 * The containers and the systemd unit of a process, from the text of /proc/PID/cgroup. Runtimes name a container's group
 * by 64 hexadecimal digits, Kubernetes a pod's by its uid:
 *
 *     /kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod<uid with _>.slice/cri-containerd-<id>.scope
 *     /kubepods/besteffort/pod<uid>/<id>                        cgroupfs driver; guaranteed pods have no QoS segment
 *     /kubepods.slice/kubepods-pod<32 digits>.slice/crio-<id>.scope/container     a static pod, CRI-O
 *     /kubepods-besteffort-pod<uid>.slice:cri-containerd:<id>   drivers of kubelet and containerd differ
 *     /docker/<node>/kubelet/kubepods/pod<uid>/<id>             nested: kind, Docker in Docker
 *     /../../kubepods-burstable-pod<uid>.slice/...              seen from another container's cgroup namespace
 */
import type { Pid } from "../../model/base/units.js";
import { readText } from "./proc_files.js";

export interface ContainerPlace {
  /** 64 hexadecimal digits; "": a group of a pod in which no container is named. */
  readonly id: string;
  /** Uid of the pod as the API server writes it, 32 digits for a static pod; "" outside Kubernetes. */
  readonly pod: string;
}

/** The text of /proc/PID/cgroup; "" if the process has ended. */
export function readGroups(pid: Pid): string {
  return readText(`/proc/${pid}/cgroup`) ?? "";
}

const CONTAINER = /(?:^|-)([0-9a-f]{64})$/;
const POD = /(?:^|-)pod([0-9a-f]{8}(?:[-_][0-9a-f]{4}){3}[-_][0-9a-f]{12}|[0-9a-f]{32})$/;
/** Monitors of containers, which run outside of them. */
const MONITOR = /^(?:crio|libpod)-conmon-/;
const NAMED = /^(?:lxc(?:\.payload)?\.|machine-)(.+)$/;

/**
 * Outermost first: the host's own containers come before those that a container creates inside itself. Of several
 * hierarchies (version 1), the first one that names most containers counts.
 */
export function containersIn(groups: string): ContainerPlace[] {
  let most: ContainerPlace[] = [];
  for (const path of pathsIn(groups)) {
    const places = placesIn(path);
    most = places.length > most.length ? places : most;
  }
  return most;
}

function placesIn(path: string): ContainerPlace[] {
  const places: ContainerPlace[] = [];
  let pod = "";
  for (const segment of path.split(/[/:]/)) {
    const name = segment.replace(/\.(?:slice|scope|service)$/, "");
    if (MONITOR.test(name)) {
      break;
    }
    const uid = POD.exec(name)?.[1];
    if (uid !== undefined) {
      pod = uid.replaceAll("_", "-");
      places.push({ id: "", pod });
      continue;
    }
    const id = CONTAINER.exec(name)?.[1];
    if (id !== undefined) {
      const isFirstOfPod = places.at(-1)?.id === "";
      places.splice(isFirstOfPod ? -1 : places.length, 1, { id, pod });
    }
  }
  return places;
}

/** The innermost container's id, otherwise the pod's uid or the name that LXC or systemd gave it; "": in no container. */
export function containerOf(groups: string): string {
  const last = containersIn(groups).at(-1);
  if (last !== undefined) {
    return last.id || last.pod;
  }
  for (const path of pathsIn(groups)) {
    const segments = path.split("/");
    for (const [n, segment] of segments.entries()) {
      const [, name] = NAMED.exec(segment) ?? [];
      const named = segments[n - 1] === "lxc" ? segment : name;
      if (named !== undefined && named !== "") {
        return unescapeUnit(named.replace(/\.(?:scope|service)$/, ""));
      }
    }
  }
  return "";
}

/** Units that run other people's programs: the name of such a unit does not describe the program. */
const HOSTS =
  /^(?:user|getty|serial-getty|ssh|sshd|cron|crond|atd|supervisor|supervisord|docker|containerd|crio|kubelet|k3s|podman|lxc|libvirtd|display-manager|gdm|init)(?:@.*)?$/;

/** The systemd service of a process, without ".service"; "" for sessions, containers and without systemd. */
export function unitOf(groups: string): string {
  if (containerOf(groups) !== "") {
    return "";
  }
  for (const path of pathsIn(groups)) {
    const segments = path.split("/").filter((segment) => segment !== "");
    const at = segments.findLastIndex((segment) => segment.endsWith(".service"));
    const slice = segments[at - 1] ?? "";
    const name = unescapeUnit((segments[at] ?? "").slice(0, -".service".length));
    if (at > 0 && slice.endsWith(".slice") && name !== "" && !HOSTS.test(name)) {
      return name;
    }
  }
  return "";
}

/** systemd writes characters that a unit's name cannot have as \xNN. */
function unescapeUnit(name: string): string {
  return name.replace(/\\x([0-9a-f]{2})/g, (_, hex: string) =>
    String.fromCharCode(Number.parseInt(hex, 16)),
  );
}

function pathsIn(groups: string): string[] {
  return groups.split("\n").flatMap((line) => /^\d+:[^:]*:(.*)$/.exec(line)?.[1] ?? []);
}
