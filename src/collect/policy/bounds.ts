/** The bounds that a policy sets, with their defaults. */
import type { Bytes, Millis } from "../../model/base/units.js";
import type { Limit } from "../../model/settings/limit.js";
import type { ArtifactBounds } from "../kept/artifacts.js";
import type { Policy } from "./policy.js";

export interface CaptureBounds {
  /** Captures of one service in an hour. */
  readonly perHour: number;
  /** Share of a core that captures may use in the long run. */
  readonly cpu: number;
  /** A program is not paused for longer. */
  readonly maxPauseMs: Millis;
}

export interface Bounds {
  readonly warmUpMs: Millis;
  /** Interval of the polls of a program without the agent. */
  readonly pollMs: Millis;
  readonly agents: number;
  readonly turnMs: Millis;
  readonly keepMs: Millis;
  readonly mostBytes: Bytes;
  readonly artifacts: ArtifactBounds;
  /** Larger artifacts are not sent to the server. */
  readonly sendBytes: Bytes;
  readonly captures: CaptureBounds;
  /** Of all programs of the host. */
  readonly actions: Limit;
  /** Whether the server may ask for profiles and hand out policy. */
  readonly remote: boolean;
}

export function boundsOf({ defaults }: Policy): Bounds {
  const { artifacts = {} } = defaults;
  return {
    warmUpMs: defaults.warm_up ?? 60_000,
    pollMs: defaults.poll ?? 20_000,
    agents: defaults.agents ?? 20,
    turnMs: defaults.turn ?? 600_000,
    keepMs: defaults.keep ?? 86_400_000,
    mostBytes: defaults.disk ?? 2 * 2 ** 30,
    artifacts: {
      count: artifacts.count ?? 10,
      keepMs: artifacts.keep ?? 7 * 86_400_000,
      mostBytes: artifacts.disk ?? 2 * 2 ** 30,
    },
    sendBytes: artifacts.send ?? 2 ** 30,
    captures: {
      perHour: artifacts.per_hour ?? 6,
      cpu: artifacts.cpu ?? 0.01,
      maxPauseMs: artifacts.max_pause ?? 500,
    },
    actions: defaults.actions ?? { count: 20, perMs: 3_600_000 },
    remote: defaults.remote ?? true,
  };
}
