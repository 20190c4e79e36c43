import type { Evidence } from "../evidence/evidence.js";

export function missingEvidence(evidence: Evidence): string[] {
  if (evidence.snapshots && evidence.processes.every(({ series }) => series.timesMs.length === 0)) {
    return []; // a snapshot alone: the host's memory is not what it is about
  }
  const sentences: string[] = [];
  if (!evidence.sites) {
    sentences.push("No agent ran: no site of an allocation is known.");
  }
  if (!evidence.holders || evidence.holders.length === 0) {
    sentences.push("Holders were not looked up: which object keeps the memory is not known.");
  }
  if (!evidence.processes[0]?.series.values.has("ledger.malloc.used")) {
    sentences.push(
      "No ledger was taken: of RSS only private, file and shared pages are told apart.",
    );
  }
  return sentences;
}
