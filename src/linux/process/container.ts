import type { Pid } from "../../model/base/units.js";
import { readText } from "./proc_files.js";

/** The container's id, else the pod's uid, from a process's cgroup; "" outside one or where it is gone. */
export function readContainer(pid: Pid): string {
  return containerOf(readText(`/proc/${pid}/cgroup`) ?? "");
}

/**
 * From the text of /proc/PID/cgroup. Container runtimes put 64 hex digits in the path
 * (docker-<id>.scope, cri-containerd-<id>.scope, /docker/<id>, /kubepods/.../<id>), Kubernetes the
 * pod's uid (pod<uid>, with _ for - under systemd), LXC and systemd-nspawn a name.
 */
export function containerOf(cgroup: string): string {
  const id = /(?:^|[/:-])([0-9a-f]{64})(?:\.scope)?(?:$|\/)/m.exec(cgroup)?.[1];
  if (id !== undefined) {
    return id;
  }
  const pod = /pod([0-9a-f]{8}(?:[-_][0-9a-f]{4}){3}[-_][0-9a-f]{12})/.exec(cgroup)?.[1];
  if (pod !== undefined) {
    return pod.replaceAll("_", "-");
  }
  return (
    /\/(?:lxc(?:\.payload)?[./]|machine-)([^/\n]+?)(?:\.(?:scope|service))?(?:$|\/)/m.exec(
      cgroup,
    )?.[1] ?? ""
  );
}
