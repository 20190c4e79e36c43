/** What the kernel and the file system say: the only readers of /proc. */

export { type CoreGaps, type CoreMemory, openCoreFile } from "./core/core_file.js";
export { DynamicSymbols } from "./elf/dynamic_symbols.js";
export { inspectProgram, type ProgramAnswer, type ProgramKind } from "./elf/program.js";
export {
  copyThreads,
  type HeldThread,
  type StackCopy,
  StackRoom,
  type ThreadUnwinder,
} from "./hold/held_threads.js";
export {
  type CallAddresses,
  type Held,
  holdProcess,
  ProcessHolder,
  type ThreadRegisters,
} from "./hold/hold.js";
export { readStackPointers } from "./hold/stack_pointers.js";
export { mappedInodes } from "./memory/mapped_files.js";
export type { AddressRange, Mapping, Memory } from "./memory/memory.js";
export { MemoryReader } from "./memory/memory_reader.js";
export { openProcessMemory } from "./memory/process_memory.js";
export {
  isMapping,
  isMappingNamed,
  processesMapping,
  sharedMemoryUsed,
} from "./memory/shared_memory.js";
export {
  type ResidentBytes,
  type ResidentMapping,
  readSmaps,
  readSmapsTotal,
} from "./memory/smaps.js";
export {
  type CgroupMemory,
  type CgroupPlace,
  findCgroup,
  readLimiting,
} from "./process/cgroup.js";
export { readContainer } from "./process/container.js";
export { type Interpreter, readInterpreter } from "./process/interpreter.js";
export { openFilesEnding } from "./process/open_files.js";
export { readPageCache } from "./process/page_cache.js";
export { type AttachAnswer, readAttachPermission } from "./process/permission.js";
export {
  countOpenFiles,
  countSockets,
  hasEnded,
  isLeaving,
  isSocket,
  type MemoryRollup,
  type ProcessStat,
  type ProcessStatus,
  readCommand,
  readDescriptors,
  readExecutable,
  readRollup,
  readStat,
  readStatus,
  readWrittenBytes,
  startTimeMs,
} from "./process/process.js";
export { type PythonProcess, readPythonProcesses } from "./process/python_processes.js";
export { readTasks, type Task, taskIds } from "./process/tasks.js";
export { descendantsOf, listPids } from "./process/tree.js";
export { userName } from "./process/users.js";
