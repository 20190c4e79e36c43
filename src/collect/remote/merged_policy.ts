/**
 * The host's policy together with the one that the server hands out. The host's rules come first, and its defaults win. The
 * server cannot set what a program or the host could suffer from: actions, which run commands; the server's own address;
 * disk and CPU budgets; how long a program may be paused; whether the server may ask at all.
 */
import { type Policy, policyOf } from "../policy/policy.js";

const NAME = "the server's policy";

/** Throws TidemarkError if the text is invalid. */
export function mergedPolicy(local: Policy, handed: string): Policy {
  const { defaults, select } = policyOf(handed, NAME);
  const { actions: _actions, disk: _disk, remote: _remote, artifacts = {}, ...others } = defaults;
  const { disk: _space, cpu: _cpu, max_pause: _pause, send: _send, ...kept } = artifacts;
  return {
    ...local,
    defaults: {
      ...others,
      ...local.defaults,
      artifacts: { ...kept, ...local.defaults.artifacts },
    },
    select: [...local.select, ...select.map(({ actions: _none, ...rule }) => rule)],
  };
}
