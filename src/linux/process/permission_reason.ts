/**
 * Which of the kernel's rules refused access, derived from world-readable information (ptrace(2), "Ptrace access
 * mode checking"; Documentation/admin-guide/LSM/Yama.rst; proc(5)), and what to do. In the kernel's order:
 *
 *   1  uid: all of the other's user ids are ours, or CAP_SYS_PTRACE in its user namespace
 *   2  dumpable: it did not change its uid and did not ask to be hidden, or the same capability
 *   3  capabilities: it has none that we lack, or the same capability
 *   4  Yama: scope 0, or an ancestor (1), or the same capability (1 and 2); 3: no process
 *   5  other modules (AppArmor, SELinux), and a seccomp filter on the system call itself
 */

export type Place = "shell" | "docker" | "kubernetes";

export interface PtraceFacts {
  /** Name of the errno. */
  readonly code: string;
  /** Whether its memory may be opened although ptrace(2) is refused. */
  readonly memoryReadable: boolean;
  readonly ownUid: number;
  readonly ownCapabilities: bigint;
  /** Whether this process is in the machine's initial user namespace. */
  readonly ownNamespaceIsInitial: boolean;
  readonly seccompFiltered: boolean;
  /** Label of the security module ("docker-default (enforce)"); "" if there is none. */
  readonly profile: string;
  /** null if the process has ended or is hidden. */
  readonly uid: number | null;
  readonly userName: string;
  /** Owner of the process's files in /proc. */
  readonly owner: number | null;
  /** Permitted capabilities of the process. */
  readonly capabilities: bigint;
  /** null if unknown. */
  readonly sameUserNamespace: boolean | null;
  /** 0 without Yama. */
  readonly yamaScope: number;
  readonly place: Place;
}

export const SYS_PTRACE = 1n << 19n;
/** The most common capabilities of include/uapi/linux/capability.h. */
const NAMES: ReadonlyMap<number, string> = new Map([
  [1, "CAP_DAC_OVERRIDE"],
  [2, "CAP_DAC_READ_SEARCH"],
  [10, "CAP_NET_BIND_SERVICE"],
  [12, "CAP_NET_ADMIN"],
  [13, "CAP_NET_RAW"],
  [14, "CAP_IPC_LOCK"],
  [21, "CAP_SYS_ADMIN"],
  [23, "CAP_SYS_NICE"],
  [24, "CAP_SYS_RESOURCE"],
]);

const WITH_CAPABILITY: Readonly<Record<Place, string>> = {
  shell: "run it as root: sudo tidemark ...",
  docker:
    "start this container with --cap-add SYS_PTRACE, or enter it with: docker exec --privileged -u root",
  kubernetes:
    "give its container securityContext.capabilities.add: [SYS_PTRACE], or enter the pod with: kubectl debug --profile=sysadmin --target=CONTAINER",
};

interface Refusal {
  readonly reason: string;
  readonly remedy: string;
}

export function explainRefusal(facts: PtraceFacts): Refusal {
  return facts.memoryReadable ? barredCall(facts) : (explainByRules(facts) ?? ofModules(facts));
}

/** Rules 1 to 4; null if none of them refuses. */
export function explainByRules(facts: PtraceFacts): Refusal | null {
  const { place, uid, ownUid, yamaScope } = facts;
  const capable = (facts.ownCapabilities & SYS_PTRACE) !== 0n;
  const elsewhere =
    facts.sameUserNamespace === false ||
    (facts.sameUserNamespace === null && !facts.ownNamespaceIsInitial);
  if (capable && elsewhere) {
    return {
      reason:
        "it belongs to another user namespace, and CAP_SYS_PTRACE is held only in this container's",
      remedy: outside(place),
    };
  }
  if (yamaScope === 3) {
    return {
      reason: "kernel.yama.ptrace_scope is 3: no process may, until the next boot",
      remedy: "start the program under: tidemark run",
    };
  }
  if (capable) {
    return null;
  }
  const remedy = WITH_CAPABILITY[place];
  if (uid !== null && uid !== ownUid) {
    return {
      reason: `it belongs to ${facts.userName}, and CAP_SYS_PTRACE is missing`,
      remedy:
        place === "shell"
          ? `${remedy}, or as that user: sudo -u ${facts.userName} tidemark ...`
          : remedy,
    };
  }
  if (uid !== null && facts.owner !== null && facts.owner !== uid) {
    return {
      reason:
        "it is not dumpable (it changed its uid, requested this, or its program is not readable)",
      remedy,
    };
  }
  const lacking = facts.capabilities & ~facts.ownCapabilities;
  if (lacking !== 0n) {
    return { reason: `it has capabilities that this process lacks (${named(lacking)})`, remedy };
  }
  if (yamaScope === 2) {
    return {
      reason: "kernel.yama.ptrace_scope is 2: only processes with CAP_SYS_PTRACE may",
      remedy,
    };
  }
  if (yamaScope === 1) {
    return {
      reason: "kernel.yama.ptrace_scope is 1: only its ancestors may",
      remedy:
        place === "shell"
          ? `${remedy}, or: sudo sysctl kernel.yama.ptrace_scope=0`
          : `${remedy}, or on the machine itself: sysctl kernel.yama.ptrace_scope=0`,
    };
  }
  return null;
}

/** Rule 5, and anything else. */
function ofModules({ code, profile, place }: PtraceFacts): Refusal {
  if (profile !== "" && profile !== "unconfined" && !profile.includes("unconfined_t")) {
    return {
      reason: `the security profile ${profile} forbids it`,
      remedy: {
        shell: "run it from an unconfined shell",
        docker: "start this container with --security-opt apparmor=unconfined",
        kubernetes: "set securityContext.appArmorProfile.type: Unconfined on its container",
      }[place],
    };
  }
  return {
    reason: `the kernel refuses (${code}): a sandbox or security module forbids it`,
    remedy: outside(place),
  };
}

function barredCall({ seccompFiltered, place, code }: PtraceFacts): Refusal {
  return {
    reason: seccompFiltered
      ? "a seccomp filter forbids ptrace here, although its memory is readable"
      : `the kernel refuses ptrace (${code}), although its memory is readable`,
    remedy: {
      shell: "run it from a shell outside the sandbox",
      docker: "start this container with --cap-add SYS_PTRACE or --security-opt seccomp=unconfined",
      kubernetes:
        "give its container capabilities.add: [SYS_PTRACE], or seccompProfile.type: Unconfined",
    }[place],
  };
}

function outside(place: Place): string {
  return {
    shell: "run it as root in the machine's own namespace: sudo tidemark ...",
    docker: "run it on the machine itself, or with: docker run --privileged --pid=host",
    kubernetes: "run it on the node: kubectl debug node/NODE --profile=sysadmin",
  }[place];
}

function named(capabilities: bigint): string {
  const names: string[] = [];
  for (let bit = 0; bit < 64; bit++) {
    if (capabilities & (1n << BigInt(bit))) {
      names.push(NAMES.get(bit) ?? `capability ${bit}`);
    }
  }
  return names.length > 3 ? `${names.slice(0, 3).join(", ")}, ...` : names.join(", ");
}
