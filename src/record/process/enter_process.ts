/** Enters a process for a recorder. If it does not run Python code, the error names its current native frame. */
import {
  type RemoteAnswer,
  type RemoteExecOptions,
  remoteExec,
} from "../../cpython/entry/remote_exec.js";
import type { Pid } from "../../model/base/units.js";
import { Unwinder } from "../../native/index.js";

/** Like {@link remoteExec}. */
export async function enterProcess(
  pid: Pid,
  work: string,
  options: RemoteExecOptions,
): Promise<RemoteAnswer> {
  return await remoteExec(pid, work, {
    openUnwinder: (memory) => new Unwinder(memory),
    ...options,
  });
}
