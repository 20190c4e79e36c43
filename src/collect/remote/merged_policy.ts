/**
 * The host's policy together with the one that the server hands out. The host's rules come first, and its defaults win. The
 * server cannot set what a program or the host could suffer from: actions, which run commands; the server's own address;
 * disk and CPU budgets; what is removed from the disk, and when; how long a program may be paused; whether the server may
 * ask at all.
 */
import { type Policy, policyOf } from "../policy/policy.js";

const NAME = "the server's policy";

/** Throws TidemarkError if the text is invalid. */
export function mergedPolicy(local: Policy, handed: string): Policy {
  const { defaults, select } = policyOf(handed, NAME);
  // Named one by one, so that a new setting is the host's own until somebody decides otherwise.
  const { warm_up, poll, agents, turn, triggers, artifacts } = defaults;
  const given = { warm_up, poll, agents, turn, triggers };
  const artifactsGiven = { per_hour: artifacts?.per_hour };
  return {
    ...local,
    defaults: {
      ...given,
      ...local.defaults,
      artifacts: { ...artifactsGiven, ...local.defaults.artifacts },
    },
    select: [...local.select, ...select.map(({ actions: _none, ...rule }) => rule)],
  };
}
