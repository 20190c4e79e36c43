/**
 * The MIG instances of devices and the processes on them, from `nvidia-smi -q`, whose indentation shows the structure.
 *
 *     GPU 00000000:07:00.0
 *         GPU UUID                          : GPU-1f0c...
 *         MIG Device
 *             Index                         : 0
 *             GPU Instance ID               : 1
 *             Compute Instance ID           : 0
 *             FB Memory Usage
 *                 Total                     : 9856 MiB
 *                 Used                      : 3100 MiB
 *         Processes
 *             GPU instance ID               : 1
 *             Compute instance ID           : 0
 *             Process ID                    : 4242
 *                 Used GPU Memory           : 3072 MiB
 */
import type { Bytes, Pid } from "../../model/base/units.js";

interface DeviceInstance {
  readonly uuid: string;
  readonly index: number;
  readonly gpuInstance: number;
  readonly computeInstance: number;
  readonly totalBytes: Bytes;
  readonly usedBytes: Bytes;
}

interface InstanceProcess {
  readonly uuid: string;
  readonly pid: Pid;
  /** `index` of its instance. */
  readonly instance: number;
  readonly usedBytes: Bytes | null;
}

export interface InstanceReading {
  readonly instances: DeviceInstance[];
  readonly processes: InstanceProcess[];
}

interface Node {
  readonly key: string;
  readonly value: string;
  readonly depth: number;
  readonly children: Node[];
}

const MIB = 2 ** 20;

/** @param text output of `nvidia-smi -q`; any other text yields nothing */
export function parseInstances(text: string): InstanceReading {
  const snapshot: InstanceReading = { instances: [], processes: [] };
  for (const device of treeOf(text).filter(({ key }) => key.startsWith("GPU "))) {
    const uuid = textOf(device, "GPU UUID");
    for (const part of childrenOf(device, "MIG Device")) {
      const memory = childrenOf(part, "FB Memory Usage")[0];
      snapshot.instances.push({
        uuid,
        index: Number(textOf(part, "Index")),
        gpuInstance: Number(textOf(part, "GPU Instance ID")),
        computeInstance: Number(textOf(part, "Compute Instance ID")),
        totalBytes: (memory && mebibytes(textOf(memory, "Total"))) ?? 0,
        usedBytes: (memory && mebibytes(textOf(memory, "Used"))) ?? 0,
      });
    }
    const own = snapshot.instances.filter((instance) => instance.uuid === uuid);
    for (const processes of childrenOf(device, "Processes")) {
      snapshot.processes.push(...processesOf(uuid, processes, own));
    }
  }
  return snapshot;
}

/** The ids of the instance precede each process. */
function processesOf(
  uuid: string,
  { children }: Node,
  instances: readonly DeviceInstance[],
): InstanceProcess[] {
  const found: InstanceProcess[] = [];
  let gpuInstance = "";
  let computeInstance = "";
  for (const node of children) {
    if (/^GPU instance ID$/i.test(node.key)) {
      gpuInstance = node.value;
    } else if (/^Compute instance ID$/i.test(node.key)) {
      computeInstance = node.value;
    } else if (node.key === "Process ID" && /^\d+$/.test(node.value)) {
      const instance = instances.find(
        (one) =>
          String(one.gpuInstance) === gpuInstance &&
          String(one.computeInstance) === computeInstance,
      );
      if (instance !== undefined) {
        found.push({
          uuid,
          pid: Number(node.value),
          instance: instance.index,
          usedBytes: mebibytes(textOf(node, "Used GPU Memory")),
        });
      }
    }
  }
  return found;
}

function treeOf(text: string): Node[] {
  const root: Node = { key: "", value: "", depth: -1, children: [] };
  const open: Node[] = [root];
  for (const line of text.split("\n")) {
    const match = /^(\s*)(\S.*?)(?:\s+:\s*(.*))?$/.exec(line);
    if (match === null) {
      continue;
    }
    const [, indent = "", key = "", value = ""] = match;
    const node: Node = { key, value: value.trim(), depth: indent.length, children: [] };
    while (open.length > 1 && (open.at(-1) ?? root).depth >= node.depth) {
      open.pop();
    }
    (open.at(-1) ?? root).children.push(node);
    open.push(node);
  }
  return root.children;
}

function childrenOf({ children }: Node, key: string): Node[] {
  return children.filter((node) => node.key === key);
}

function textOf(node: Node, key: string): string {
  return childrenOf(node, key)[0]?.value ?? "";
}

function mebibytes(text: string): Bytes | null {
  const figure = /^(\d+) MiB$/.exec(text)?.[1];
  return figure === undefined ? null : Number(figure) * MIB;
}
