/**
 * New blocks that no sample shows. After an attach, code that resolved malloc before calls it directly (ctypes, cffi,
 * tables of function pointers), so the agent does not see these calls. Blocks from before the recording that are
 * written for the first time look similar, but the address space does not grow with them.
 */

import { formatSlopeBriefly } from "../../model/base/numbers.js";
import type { PartGrowth } from "../evidence/ledger_growth.js";
import type { ProcessObservation } from "../evidence/observations.js";
import { isFirm } from "../series/growth.js";
import { adviceById } from "../wording/advice.js";
import type { Finding } from "./rule.js";

/** Share of the growth of malloc's memory by which the address space must have grown. */
const LEAST_NEW = 0.5;
const WEIGHT = 0.75;

/** Growth of malloc's memory that consists of new blocks; `part`: its growth according to the ledgers. */
export function makesNewBlocks(process: ProcessObservation, { rise, spanMs }: PartGrowth): boolean {
  const space = process.growth("vmsBytes");
  return (
    isFirm(process.growth("rssBytes")) && space.slope * spanMs >= LEAST_NEW * rise && space.low > 0
  );
}

/** `detail`: the growth of malloc's memory. */
export function unseenCalls(process: ProcessObservation, detail: string): Finding {
  const growth = process.growth("rssBytes");
  return {
    says: "leak",
    kind: "native-leak",
    weight: WEIGHT,
    detail: `${detail} The address space grows as well, so these are new blocks, but no sampled call of malloc made them: ${CALLERS}`,
    sentence: `Native memory is never freed: ${formatSlopeBriefly(growth.slope)} more in malloc, by calls that the agent does not see; ${CALLERS}`,
    growth,
    advice: [adviceById("TM-A031")],
  };
}

const CALLERS =
  "code that resolved malloc before the attach (ctypes, cffi, tables of function pointers) calls it directly. tidemark run sees such calls and names their line.";
