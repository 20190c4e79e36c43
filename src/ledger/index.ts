/** A process's resident memory divided into parts that add up to it. */
export { readLedger } from "./read_ledger.js";
