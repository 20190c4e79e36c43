/**
 * The collector of a host: finds Python programs, records each of them as its policy says, and sends the
 * recordings to a server or judges them itself.
 *
 *     await new Collector({ policyPath, folder, to, until, onEvent }).run();
 *     watchDocument(policyPath); // what it would do; touches nothing
 */
export { Collector, type WatchOptions } from "./collector.js";
export { readPolicy } from "./policy.js";
export type { WatchEvent } from "./watch_event.js";
export { watchDocument } from "./watch_table.js";
