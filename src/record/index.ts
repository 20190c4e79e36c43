/**
 * The recorder and its recordings: run a program under the agent, read what was recorded, sum it up.
 *
 *     const result = await runUnderAgent({ command, recordingPath, libraryPath, guardDescriptor });
 *     const summary = summarize(result.open(), "end");
 *     result.leave(result.exitCode);
 *
 *     finishOrphan(path);                       // before every openRecording of a path from a user
 *     const recording = openRecording(path);
 *
 * All readers throw TidemarkError alone.
 */
export { type AttachOptions, type AttachResult, attachAndRecord } from "./attach.js";
export { type DetachAnswer, detachAgent } from "./detach.js";
export { growthOfDevices } from "./device_growth.js";
export { type DeviceLook, lookAtDevices } from "./device_look.js";
export { type DeviceSnapshot, readDeviceSnapshot } from "./device_snapshot.js";
export { evidenceOf } from "./evidence.js";
export { growingRecordingOf } from "./growing.js";
export { importPool } from "./import_pool.js";
export { finishOrphan } from "./orphan.js";
export { probeProcess } from "./probe.js";
export { openRecording } from "./reader.js";
export { buildReport } from "./report.js";
export { runUnderAgent } from "./run.js";
export { summarize } from "./summary.js";
export type {
  AgentFigures,
  DeviceWatchOptions,
  LookMoment,
  Moment,
  RecordedProcess,
  Recording,
  RecordingEnd,
  RecordingMeta,
  RunOptions,
  RunResult,
  Tell,
} from "./types.js";
export { type WatchOptions, watchProcess } from "./watch_process.js";
