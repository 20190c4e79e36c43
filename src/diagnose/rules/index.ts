/** All rules in order: between two findings of equal weight, the earlier rule decides. */

import { ageCohorts } from "./age_cohorts.rule.js";
import { allocator } from "./allocator.rule.js";
import { autogradGraph } from "./autograd_graph.rule.js";
import { boundedHolder } from "./bounded_holder.rule.js";
import { boxedNumbers } from "./boxed_numbers.rule.js";
import { censusGrowth } from "./census_growth.rule.js";
import { children } from "./children.rule.js";
import { copyOnWrite } from "./copy_on_write.rule.js";
import { garbageCycles } from "./garbage_cycles.rule.js";
import { gpuCapacity } from "./gpu_capacity.rule.js";
import { gpuContention } from "./gpu_contention.rule.js";
import { gpuFragmentation } from "./gpu_fragmentation.rule.js";
import { gpuGraph } from "./gpu_graph.rule.js";
import { gpuLeak } from "./gpu_leak.rule.js";
import { handles } from "./handles.rule.js";
import { ledgerParts } from "./ledger_parts.rule.js";
import { libraryObjects } from "./library_objects.rule.js";
import { mappedFiles } from "./mapped_files.rule.js";
import { nativeMemory } from "./native_memory.rule.js";
import { plateau } from "./plateau.rule.js";
import { probe } from "./probe.rule.js";
import type { Rule } from "./rule.js";
import { sharedMemory } from "./shared_memory.rule.js";
import { smallGrowth } from "./small_growth.rule.js";
import { trend } from "./trend.rule.js";
import { window } from "./window.rule.js";

export const RULES: readonly Rule[] = [
  window,
  probe,
  gpuGraph,
  gpuLeak,
  gpuFragmentation,
  gpuContention,
  gpuCapacity,
  boundedHolder,
  handles,
  sharedMemory,
  mappedFiles,
  copyOnWrite,
  children,
  garbageCycles,
  nativeMemory,
  autogradGraph,
  ageCohorts,
  censusGrowth,
  libraryObjects,
  allocator,
  ledgerParts,
  plateau,
  smallGrowth,
  boxedNumbers,
  trend,
];
