/** A process's rank in a distributed job, from the environment variables that its launcher set. */
import type { Pid } from "../../model/base/units.js";
import { environmentText } from "./environment.js";

/**
 * torchrun, deepspeed and accelerate set RANK, and LOCAL_RANK for the ranks of one host; Open MPI and MPICH
 * have their own variables.
 */
const VARIABLES = ["RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "LOCAL_RANK"];

/**
 * null if the environment contains no rank or may not be read. It is the environment that the process was
 * started with, so variables that the process sets later are not included.
 */
export function readRank(pid: Pid): number | null {
  return rankIn(environmentText(pid));
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
