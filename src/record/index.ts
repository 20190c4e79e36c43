/**
 * The recorder: run a program under the agent, attach to one, watch one from outside, complete the recording of
 * a dead recorder.
 *
 *     const result = await runUnderAgent({ command, recordingPath, guardDescriptor });
 *     const summary = summarize(result.open(), "end"); // inspect/recorded
 *     result.leave(result.exitCode);
 *
 *     finishOrphan(path);                       // before openRecording of any path that a user gives
 *     const recording = openRecording(path);
 *
 * Everything here throws TidemarkError only.
 */
export {
  type AttachOptions,
  type AttachResult,
  attachAndRecord,
  otherRecorderOf,
} from "./attach/attach.js";
export type { RecordingStart } from "./attach/begun_recording.js";
export { detachAgent } from "./attach/detach.js";
export { leftAgentOf } from "./attach/left_agent.js";
export { OutsideRecording } from "./attach/outside.js";
export { probeProcess } from "./attach/probe.js";
export { CpuBudget } from "./budget/cpu_budget.js";
export { watchProcess } from "./census/watch_process.js";
export { growthOfDevices } from "./devices/device_growth.js";
export { type DeviceReading, readDeviceFigures } from "./devices/device_reading.js";
export { readDeviceSnapshot } from "./devices/device_snapshot.js";
export { DeviceUse } from "./devices/device_use.js";
export type { DeviceWatchOptions } from "./devices/device_watch.js";
export { completeRun, orphanToComplete } from "./launch/complete_run.js";
export { importFile } from "./launch/import_file.js";
export { finishOrphan } from "./launch/orphan.js";
export { type Group, type GroupEnd, startGroup } from "./launch/process_group.js";
export { checkedProgram } from "./launch/program/checked_program.js";
export { type ChosenProgram, chooseProgram } from "./launch/program/choose_program.js";
export {
  choosePython,
  commandsOnPath,
  environmentFolders,
  namesIn,
  onPath,
  pythonNames,
  pythonsOnPath,
  type StartPlace,
} from "./launch/program/choose_python.js";
export { interpreterOf, type StartedPython } from "./launch/program/interpreter_of.js";
export { runUnderAgent } from "./launch/run.js";
export type { RunResult } from "./launch/run_options.js";
export type { ExitOf } from "./process/exit_report.js";
export { openRecording } from "./process/open_recording.js";
export { growingRecordingOf } from "./process/recording_in_progress.js";
export {
  collectGarbage,
  emptyDeviceCache,
  type Relief,
  runPressureHooks,
  trimAllocator,
} from "./process/relief.js";
