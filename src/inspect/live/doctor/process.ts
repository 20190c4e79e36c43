/** `tidemark doctor --pid PID`: whether one process can be read and attached to. */

import { locatePython } from "../../../cpython/index.js";
import {
  hasEnded,
  openProcessMemory,
  readAttachPermission,
  readCLibrary,
  readCommand,
  readStat,
  runsUnderValgrind,
} from "../../../linux/index.js";
import { shellWord } from "../../../model/base/shell_word.js";
import type { Pid } from "../../../model/base/units.js";
import type { DoctorCheckJson } from "../../../model/documents/doctor_document.js";
import { processGone, TidemarkError } from "../../../model/errors/errors.js";
import { growingRecordingOf, leftAgentOf } from "../../../record/index.js";
import { missing, wordsOf, works } from "./check.js";
import { glibcIsKnown, memoryCheck } from "./machine.js";

const AREA = "process";

/** Throws TM-E020 if there is no such process. */
export function processChecks(pid: Pid): DoctorCheckJson[] {
  const stat = readStat(pid);
  if (stat === null || hasEnded(stat)) {
    throw processGone(pid);
  }
  const command = readCommand(pid) ?? [];
  const what = command.length === 0 ? `[${stat.name}]` : command.join(" ");
  const { ok, reason, remedy } = readAttachPermission(pid);
  if (!ok) {
    const shortfall = { effect: "attach, heap, ledger and stacks of it", remedy };
    return [missing(AREA, "permission", `${what}: ${reason}`, shortfall)];
  }
  return [
    works(AREA, "permission", `${what}: its memory is readable`),
    cLibrary(pid),
    ...allocator(pid),
    interpreter(pid),
    recorder(pid),
    memoryCheck(pid, AREA),
  ];
}

function cLibrary(pid: Pid): DoctorCheckJson {
  const library = readCLibrary(pid);
  const shortfall = {
    effect: "attach cannot load the agent into it; ledger and stacks work",
    remedy: "",
  };
  if (library === null) {
    return missing(AREA, "C library", "none: the program is static", shortfall);
  }
  const found = `${library.kind} ${library.version}`.trim();
  return library.kind === "glibc" && glibcIsKnown(library.version)
    ? works(AREA, "C library", found)
    : missing(AREA, "C library", found, shortfall);
}

function allocator(pid: Pid): DoctorCheckJson[] {
  const found = "it runs under Valgrind, which replaces malloc";
  const shortfall = {
    effect: "attach: no allocation would be recorded",
    remedy: "record the program without Valgrind",
  };
  return runsUnderValgrind(pid) ? [missing(AREA, "allocator", found, shortfall)] : [];
}

/** The layout is verified in its memory, as for attach. The process is not paused. */
function interpreter(pid: Pid): DoctorCheckJson {
  try {
    const memory = openProcessMemory(pid);
    try {
      const { version, layout } = locatePython(memory);
      return works(AREA, "Python", `${version}, with known structures (${layout.version})`);
    } finally {
      memory.close();
    }
  } catch (error) {
    if (!(error instanceof TidemarkError)) {
      throw error;
    }
    const { found, remedy } = wordsOf(error);
    return missing(AREA, "Python", found, { effect: "attach, heap and stacks of it", remedy });
  }
}

function recorder(pid: Pid): DoctorCheckJson {
  const path = growingRecordingOf(pid);
  if (path === null) {
    return leftAgentOf(pid) === null
      ? works(AREA, "recorder", "it is not being recorded")
      : missing(AREA, "recorder", "its recorder has ended, but the agent is still in it", {
          effect: "attach is refused",
          remedy: `remove the agent: tidemark detach ${pid}`,
        });
  }
  return missing(AREA, "recorder", `it is being recorded to ${path}`, {
    effect: "a second attach is refused",
    remedy: `view that recording: tidemark live ${shellWord(path)}`,
  });
}
