/** The memory of one device at the peak of a training step. */
import type { Bytes } from "../../model/base/units.js";
import type { StepSimulation } from "../tape/simulate.js";
import type { Tape } from "../tape/tape.js";
import type { AllocationTrace } from "../tape/trace.js";
import type { Communication } from "./communication.js";
import type { States } from "./states.js";

export interface DevicePeak {
  readonly tape: Tape;
  /** Of one microbatch. */
  readonly trace: AllocationTrace;
  readonly simulation: StepSimulation;
  readonly states: States;
  readonly communication: Communication | null;
  readonly ncclBytes: Bytes;
  /** Microbatches whose activations are live at once. */
  readonly inFlight: number;
  /** True if the optimizer's step needs more than the backward pass. */
  readonly stepIsPeak: boolean;
  readonly allocatedBytes: Bytes;
  readonly rank: string;
}
