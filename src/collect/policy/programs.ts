/**
 * The programs of a host: a Python process with the Python processes below it that belong to the same service.
 * A master with its workers is one program and has one recording, also if the workers are started with `python -c`, as
 * multiprocessing's spawn and forkserver do.
 *
 *     supervisord ── shop (gunicorn) ── worker      two programs: supervisord alone, and shop with its workers
 *                                    └─ worker
 */
import { type ScannedProcess, userName } from "../../linux/index.js";
import type { Bytes, Pid } from "../../model/base/units.js";
import { runsCodeOfParent } from "../../model/profile/program_name.js";
import { fits } from "../../model/settings/pattern.js";
import type { ActionRule } from "./action_form.js";
import {
  type DailyWindow,
  DEFAULT_TRIGGERS,
  type Match,
  type Policy,
  type Rule,
  type Trigger,
} from "./policy.js";

export interface Program {
  /** Of its first process. */
  readonly root: ScannedProcess;
  /** Python processes, the root's first. */
  readonly processes: readonly ScannedProcess[];
  /** Sum of RSS; shared memory counts more than once. */
  readonly rssBytes: Bytes;
  /** A program of another service runs below it, so its own children cannot be recorded as one tree with it. */
  readonly hasOthersBelow: boolean;
}

/** Ascending by pid of the root. */
export function programsOf(processes: readonly ScannedProcess[]): Program[] {
  const byPid = new Map(processes.map((process) => [process.pid, process]));
  const roots = new Map<Pid, Pid>();
  const rootOf = (process: ScannedProcess): Pid => {
    const known = roots.get(process.pid);
    if (known !== undefined) {
      return known;
    }
    roots.set(process.pid, process.pid); // parents that were read at different moments may form a cycle
    const parent = byPid.get(process.parentPid);
    const root =
      parent !== undefined && isOfOneService(parent, process) ? rootOf(parent) : process.pid;
    roots.set(process.pid, root);
    return root;
  };
  const members = new Map<Pid, ScannedProcess[]>();
  for (const process of processes) {
    const root = rootOf(process);
    const others = members.get(root);
    if (others === undefined) {
      members.set(root, [process]);
    } else {
      others.push(process);
    }
  }
  const above = new Set(
    processes.flatMap((process) => {
      const parent = byPid.get(process.parentPid);
      return parent === undefined || isOfOneService(parent, process) ? [] : [rootOf(parent)];
    }),
  );
  return [...members]
    .sort(([a], [b]) => a - b)
    .flatMap(([pid, all]) => {
      const root = byPid.get(pid);
      return root === undefined
        ? []
        : [
            {
              root,
              processes: [root, ...all.filter((process) => process !== root)],
              rssBytes: all.reduce((sum, { rssBytes }) => sum + rssBytes, 0),
              hasOthersBelow: above.has(pid),
            },
          ];
    });
}

function isOfOneService(parent: ScannedProcess, child: ScannedProcess): boolean {
  const isNamedAlike =
    parent.identity.service === child.identity.service ||
    (child.declared.service === "" && runsCodeOfParent(child.command));
  // Each exec moves the stack. A worker that was only forked may have a title of its own.
  const isForked = child.stackStart !== 0 && parent.stackStart === child.stackStart;
  return (
    (isForked || (isNamedAlike && parent.identity.version === child.identity.version)) &&
    parent.container === child.container
  );
}

export interface Chosen {
  /** Number of the rule in the policy, from 1; null if no rule matches. */
  readonly number: number | null;
  readonly watch: Rule["watch"];
  /** 1 for a canary. */
  readonly share: number;
  /** The time of day in which it may have the agent; null: at any time. */
  readonly window: DailyWindow | null;
  /** Most programs of one service with the agent at a time. */
  readonly most: number;
  readonly triggers: readonly Trigger[];
  /** null: none. */
  readonly actions: ActionRule | null;
  /** Whether the server may ask for a profile of it. */
  readonly remote: boolean;
}

/** What the policy applies to a program: the first rule that matches. */
export function ruleFor({ root }: Program, { select, defaults }: Policy): Chosen {
  const index = select.findIndex(({ match }) => matches(root, match));
  const rule = select[index];
  const watch = rule?.watch ?? "agent";
  const triggers = rule?.triggers ?? defaults.triggers ?? DEFAULT_TRIGGERS;
  return {
    number: rule === undefined ? null : index + 1,
    watch,
    share: isCanary(root, rule) ? 1 : (rule?.agent?.share ?? 1),
    window: rule?.agent?.window ?? null,
    most: rule?.agent?.most ?? Number.POSITIVE_INFINITY,
    triggers: watch === "never" ? [] : triggers,
    actions: rule?.actions ?? null,
    remote: rule?.remote ?? defaults.remote ?? true,
  };
}

/** Canaries have the agent whatever the share. */
function isCanary({ identity }: ScannedProcess, rule: Rule | undefined): boolean {
  const labels = rule?.agent?.canary?.labels;
  return labels !== undefined && hasLabels(identity.labels, labels);
}

function hasLabels(
  labels: Readonly<Record<string, string>>,
  patterns: Readonly<Record<string, string>>,
): boolean {
  return Object.entries(patterns).every(([name, pattern]) => fits(labels[name] ?? "", pattern));
}

/** Whether it is that time of day, in local time. */
export function isInWindow(window: DailyWindow | null, now: Date): boolean {
  if (window === null) {
    return true;
  }
  const { fromMinute, untilMinute } = window;
  const minute = now.getHours() * 60 + now.getMinutes();
  return fromMinute < untilMinute
    ? minute >= fromMinute && minute < untilMinute
    : minute >= fromMinute || minute < untilMinute;
}

function matches(root: ScannedProcess, { labels = {}, container, ...match }: Match): boolean {
  const { identity } = root;
  const isInContainer =
    container === undefined ||
    fits(root.container, container) ||
    (identity.container !== "" && fits(identity.container, container));
  const values: Record<keyof typeof match, string> = {
    service: identity.service,
    version: identity.version,
    env: identity.env,
    namespace: identity.namespace,
    workload: identity.workload,
    user: userName(root.uid),
    command: root.command.join(" "),
  };
  return (
    isInContainer &&
    Object.entries(match).every(
      ([key, pattern]) =>
        pattern === undefined || fits(values[key as keyof typeof values], pattern),
    ) &&
    hasLabels(identity.labels, labels)
  );
}
