/** What the kernel and the file system say: the only readers of /proc. */
export {
  type CgroupMemory,
  type CgroupPlace,
  findCgroup,
  readLimiting,
} from "./cgroup.js";
export { readContainer } from "./container.js";
export { type CoreGaps, type CoreMemory, openCoreFile } from "./core_file.js";
export { DynamicSymbols } from "./dynamic_symbols.js";
export {
  copyThreads,
  type HeldThread,
  type StackCopy,
  StackRoom,
  type ThreadUnwinder,
} from "./held_threads.js";
export {
  type CallAddresses,
  type Held,
  holdProcess,
  ProcessHolder,
  type ThreadRegisters,
} from "./hold.js";
export { type Interpreter, readInterpreter } from "./interpreter.js";
export { mappedInodes } from "./mapped_files.js";
export type { AddressRange, Mapping, Memory } from "./memory.js";
export { MemoryReader } from "./memory_reader.js";
export { openFilesEnding } from "./open_files.js";
export { readPageCache } from "./page_cache.js";
export { type AttachAnswer, readAttachPermission } from "./permission.js";
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
} from "./process.js";
export { openProcessMemory } from "./process_memory.js";
export { inspectProgram, type ProgramAnswer, type ProgramKind } from "./program.js";
export { type PythonProcess, readPythonProcesses } from "./python_processes.js";
export { isMapping, isMappingNamed, processesMapping, sharedMemoryUsed } from "./shared_memory.js";
export { type ResidentBytes, type ResidentMapping, readSmaps, readSmapsTotal } from "./smaps.js";
export { readStackPointers } from "./stack_pointers.js";
export { readTasks, type Task, taskIds } from "./tasks.js";
export { descendantsOf, listPids } from "./tree.js";
export { userName } from "./users.js";
