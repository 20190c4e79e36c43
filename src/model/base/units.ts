/** Bytes; an estimate may be fractional. */
export type Bytes = number;
/** A number of objects (allocations); an estimate may be fractional. */
export type Objects = number;
/** Milliseconds of a duration. */
export type Millis = number;
/** Milliseconds since 1970 (UTC). */
export type TimeMs = number;
/** Virtual address; fits a double exactly (below 2^53). */
export type Address = number;
/** Process id in the recorder's pid namespace. */
export type Pid = number;

/** Row numbers of the tables of a {@link Profile}. */
export type StringId = number;
export type FrameId = number;
/** Node of the stack tree; 0 is the empty stack. */
export type StackId = number;
export type ProcessIndex = number;
export type ThreadIndex = number;
/** Row of the label table; 0 is "no label". */
export type LabelId = number;
export type SiteIndex = number;

/**
 * Reports progress: called after each step of long work with the number of steps done and the total. Awaiting
 * it lets pending signals be handled before the next step.
 */
export type OnProgress = (done: number, of: number) => Promise<void>;
