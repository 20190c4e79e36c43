/**
 * A program's memory divided into parts that add up to it: a process's resident memory, or the contents of a
 * core file.
 */
export { readCoreLedger } from "./core_ledger.js";
export { hasMuchUnknown } from "./figures.js";
export { LedgerPlaces, readLedger } from "./read_ledger.js";
