/** A process's rank in a distributed job, as its launcher wrote it into the environment. */
import type { Pid } from "../../model/base/units.js";
import { readText } from "./proc_files.js";

/** torchrun, deepspeed and accelerate set RANK, and LOCAL_RANK for the ranks of one host; Open MPI, MPICH their own. */
const VARIABLES = ["RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "LOCAL_RANK"];

/** null if the environment names none or is not ours to read. It is the one that the process was started with: what it
 * sets in itself later is not seen. */
export function readRank(pid: Pid): number | null {
  return rankIn(readText(`/proc/${pid}/environ`) ?? "");
}

/** `environment`: NAME=VALUE, each followed by a NUL. */
export function rankIn(environment: string): number | null {
  const entries = environment.split("\0");
  for (const name of VARIABLES) {
    const value = entries.find((entry) => entry.startsWith(`${name}=`))?.slice(name.length + 1);
    if (value !== undefined && /^\d{1,9}$/.test(value)) {
      return Number(value);
    }
  }
  return null;
}
