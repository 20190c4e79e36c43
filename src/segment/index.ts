/**
 * Converts the agent's shared memory to the model's profile.
 *
 *     const pool = new PoolReader(fd);
 *     for (const slot of pool.slots()) {
 *       const reader = new SegmentReader(fd, pool.slotRange(slot.index)); // kept while the owner lives
 *       const snapshot = reader.snapshot();
 *       if (snapshot !== null) assembler.renew(assembler.begin(snapshot.header), snapshot);
 *     }
 *     const { tables, snapshot } = assembler.take(Date.now());
 *
 * All functions throw only TidemarkError.
 */
export { ProfileAssembler } from "./assembler.js";
export type { FailedAllocation, SegmentHeader } from "./header.js";
export { poolLimits, seesAllocations } from "./limits.js";
export type { LiveSamples } from "./live_samples.js";
export type { Opening } from "./openings.js";
export { type PoolHeader, PoolReader, type PoolSlot } from "./pool.js";
export { SegmentReader, type SegmentSnapshot } from "./reader.js";
