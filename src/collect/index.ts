/**
 * The collector of a host: finds Python programs, records each of them according to its policy, and sends the
 * recordings to a server or diagnoses them itself.
 *
 *     await new Collector({ policyPath, folder, to, until, onEvent }).run();
 *     watchDocument(policyPath); // reports what the policy would do, and attaches to nothing
 */
export { Collector, type WatchOptions } from "./collector.js";
export { readPolicy } from "./policy/policy.js";
export type { WatchEvent } from "./recordings/watch_event.js";
export { watchDocument } from "./watch_table.js";
