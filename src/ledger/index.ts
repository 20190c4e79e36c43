/** A program's memory divided into parts that add up to it: a process's resident memory, or what a core holds. */
export { readCoreLedger } from "./core_ledger.js";
export { hasMuchUnknown } from "./figures.js";
export { LedgerPlaces, readLedger } from "./read_ledger.js";
