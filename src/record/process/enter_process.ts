/** A process entered by a recorder: where it takes nothing, the refusal names the native frame that it is at. */
import {
  type RemoteAnswer,
  type RemoteExecOptions,
  remoteExec,
} from "../../cpython/entry/remote_exec.js";
import type { Pid } from "../../model/base/units.js";
import { Unwinder } from "../../native/index.js";

/** As {@link remoteExec}. */
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
