/** Checks of the machine and of the installation. */
import { accessSync, constants, existsSync } from "node:fs";
import { release } from "node:os";
import { findCgroup, readLimiting } from "../../../linux/index.js";
import { GUARD_PATH, LIBRARY_PATH } from "../../../linux/installation.js";
import { formatBytes } from "../../../model/base/numbers.js";
import type { Bytes, Pid } from "../../../model/base/units.js";
import type { DoctorCheckJson } from "../../../model/documents/doctor_document.js";
import { type Area, limited, missing, works } from "./check.js";

const OLDEST_GLIBC = [2, 28] as const;
const OLDEST_NODE = 20;
/** The largest agent segment, plus a margin for the recorder. */
const ROOM_BYTES: Bytes = 64 << 20;

export function machineChecks(): DoctorCheckJson[] {
  return [platform(), cLibrary(), node(), parts(), folder()];
}

function platform(): DoctorCheckJson {
  const found = `${process.platform} ${release()} on ${process.arch}`;
  return process.platform === "linux" && process.arch === "x64"
    ? works("machine", "platform", found)
    : missing("machine", "platform", found, {
        effect: "Tidemark works only on Linux on x86-64",
        remedy: "",
      });
}

function cLibrary(): DoctorCheckJson {
  const { header } = process.report.getReport() as unknown as {
    header: { glibcVersionRuntime?: string };
  };
  const version = header.glibcVersionRuntime;
  if (version === undefined) {
    return missing("machine", "C library", "not glibc", {
      effect: "the agent needs glibc 2.28 or newer",
      remedy: "use a Debian, Ubuntu or Fedora image, or another distribution with glibc",
    });
  }
  return glibcIsKnown(version)
    ? works("machine", "C library", `glibc ${version}`)
    : missing("machine", "C library", `glibc ${version}`, {
        effect: "the agent needs glibc 2.28 or newer",
        remedy: "use a newer distribution",
      });
}

/** Whether the agent works with this glibc; "" counts as one that does. */
export function glibcIsKnown(version: string): boolean {
  const [major = 0, minor = 0] = version.split(".").map(Number);
  const [oldestMajor, oldestMinor] = OLDEST_GLIBC;
  return version === "" || major > oldestMajor || (major === oldestMajor && minor >= oldestMinor);
}

function node(): DoctorCheckJson {
  const { version } = process;
  return Number(version.slice(1).split(".")[0]) >= OLDEST_NODE
    ? works("machine", "Node.js", `${version} (${process.execPath})`)
    : missing("machine", "Node.js", version, {
        effect: "Tidemark needs Node.js 20 or newer",
        remedy: "install it from https://nodejs.org",
      });
}

function parts(): DoctorCheckJson {
  const absent = [GUARD_PATH, LIBRARY_PATH].filter((path) => !existsSync(path));
  return absent.length === 0
    ? works("installation", "agent", LIBRARY_PATH)
    : missing("installation", "agent", `missing: ${absent.join(", ")}`, {
        effect: "run and attach cannot record",
        remedy: "install Tidemark again, or build it in a clone: npm run build",
      });
}

function folder(): DoctorCheckJson {
  const here = process.cwd();
  try {
    accessSync(here, constants.W_OK);
    return works("machine", "folder", `${here} is writable`);
  } catch (error) {
    return limited("machine", "folder", `${here}: ${(error as NodeJS.ErrnoException).code}`, {
      effect: "recordings cannot be written to the current folder",
      remedy: "use another folder: tidemark run -o /tmp/app.tidemark ...",
    });
  }
}

/** Free memory in the control group of a process. */
export function memoryCheck(pid: Pid, area: Area): DoctorCheckJson {
  const place = findCgroup(pid);
  const memory = place && readLimiting(place);
  if (memory === null) {
    return limited(area, "control group", "no readable memory controller", {
      effect: "recordings show neither the distance to the limit nor kills by it",
      remedy: "in a container, mount /sys/fs/cgroup",
    });
  }
  const { limitBytes, highBytes, usageBytes, oomKills } = memory;
  const version = `version ${place?.version}`;
  const high = highBytes === null ? "" : `, throttled above ${formatBytes(highBytes)}`;
  if (limitBytes === null) {
    const used = `${formatBytes(usageBytes)} used`;
    return works(area, "control group", `${version}, no limit${high}, ${used}`);
  }
  const free = Math.max(0, limitBytes - usageBytes);
  const killed = oomKills === null || oomKills === 0 ? "" : `, ${oomKills} processes killed by it`;
  const found = `${version}, ${formatBytes(free)} free of ${formatBytes(limitBytes)}${high}${killed}`;
  return free >= ROOM_BYTES
    ? works(area, "control group", found)
    : limited(area, "control group", found, {
        effect: "the agent and the recorder may each need up to 16 MiB in this group",
        remedy: "raise its limit: docker update --memory, or resources.limits.memory",
      });
}
