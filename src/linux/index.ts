/** Kernel and file system data: the only readers of /proc. */

export { type CoreGaps, type CoreMemory, openCoreFile } from "./core/core_file.js";
export { DynamicSymbols } from "./elf/dynamic_symbols.js";
export {
  findProgram,
  inspectProgram,
  type ProgramAnswer,
  type ProgramContext,
} from "./elf/program.js";
export {
  copyThreads,
  type HeldThread,
  StackRoom,
  type ThreadUnwinder,
} from "./hold/held_threads.js";
export { type Held, holdProcess, ProcessHolder, type ThreadRegisters } from "./hold/hold.js";
export { readStackPointers } from "./hold/stack_pointers.js";
export { ForeignSharedMemory } from "./memory/foreign_shared_memory.js";
export { mappedInodes } from "./memory/mapped_files.js";
export type { AddressRange, Mapping, Memory } from "./memory/memory.js";
export { MemoryReader } from "./memory/memory_reader.js";
export { openProcessMemory } from "./memory/process_memory.js";
export { findRequestCount, type RequestCount, readRequestCount } from "./memory/request_count.js";
export {
  isMapping,
  isMappingNamed,
  mappedMemfd,
  processesMapping,
  sharedMemoryUsed,
} from "./memory/shared_memory.js";
export { readSmaps, readSmapsTotal } from "./memory/smaps.js";
export { type CLibrary, readCLibrary } from "./process/c_library.js";
export {
  type CgroupMemory,
  type CgroupPlace,
  findCgroup,
  ofGroup,
  readLimiting,
  readPageCache,
  roomOf,
} from "./process/cgroup.js";
export type { ContainerPlace } from "./process/containers.js";
export { readInterpreter } from "./process/interpreter.js";
export { type KernelKill, readKernelKills } from "./process/kernel_kills.js";
export {
  type GroupCounters,
  type MemoryRlimits,
  readGroupCounters,
  readMachineKills,
  readMachineMemory,
  readMemoryRlimits,
  readPressure,
} from "./process/memory_counters.js";
export { memfdHolders, openFilesEnding } from "./process/open_files.js";
export {
  type AttachAnswer,
  expectPermission,
  isKernelThread,
  readArmPermission,
  readAttachPermission,
  readPrivileges,
  refusalOf,
  runsUnderValgrind,
} from "./process/permission.js";
export {
  catchesSignal,
  countOpenFiles,
  countSockets,
  hasEnded,
  isLeaving,
  isSocket,
  type ProcessStat,
  readCommand,
  readDescriptors,
  readRollup,
  readRss,
  readStat,
  readStatus,
  readWrittenBytes,
  startTimeMs,
} from "./process/process.js";
export { type PythonProcess, readPythonProcesses } from "./process/python_processes.js";
export { type ReadText, RecentTexts } from "./process/recent_texts.js";
export { openFileBelow, openFolderBelow } from "./process/root_files.js";
export { readTasks, type Task, taskIds } from "./process/tasks.js";
export { descendantsOf, endedChildren, listPids } from "./process/tree.js";
export { userName } from "./process/users.js";
export { readEnvironment, usualName } from "./programs/environment.js";
export { PythonScan, type ScannedProcess } from "./programs/python_scan.js";
export { readRank } from "./programs/rank.js";
