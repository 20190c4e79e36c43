/** A policy in sentences, for `tidemark watch --check`. */
import {
  formatBytesBriefly,
  formatCount,
  formatDurationBriefly,
  formatShare,
} from "../../model/base/numbers.js";
import { limitText } from "../../model/settings/limit.js";
import type { ActionRule } from "./action_form.js";
import { boundsOf } from "./bounds.js";
import type { Condition } from "./conditions.js";
import type { Match, Policy, Rule, Trigger } from "./policy.js";

/** The settings for all programs, then one sentence for each rule. */
export function settingsOf(policy: Policy): string[] {
  const { agents, turnMs, warmUpMs, keepMs, mostBytes, artifacts, captures, actions, remote } =
    boundsOf(policy);
  const { server, select } = policy;
  return [
    server === undefined ? "No server is named." : `Recordings are sent to ${server.url}.`,
    remote
      ? "The server may ask for profiles, and its policy applies where this one sets nothing."
      : "Requests and policy of the server are ignored.",
    `At most ${formatCount(agents)} programs have the agent at a time, from an age of ${formatDurationBriefly(warmUpMs)}, in turns of ${formatDurationBriefly(turnMs)}. Some of those that keep ending sooner get it earlier.`,
    `Recordings stay for ${formatDurationBriefly(keepMs)} and take at most ${formatBytesBriefly(mostBytes)}.`,
    `Captures: at most ${formatCount(captures.perHour)} of a service in an hour, as many last moments, ${formatShare(captures.cpu)} of a core; the newest ${formatCount(artifacts.count)} of a service stay for ${formatDurationBriefly(artifacts.keepMs)} and take at most ${formatBytesBriefly(artifacts.mostBytes)}.`,
    ...(select.some((rule) => (rule.actions ?? null) !== null)
      ? [`Actions: at most ${limitText(actions)} on this host.`]
      : []),
    ...select.map(
      (rule, index) => `Rule ${index + 1}: ${matchText(rule.match)}: ${ruleText(rule)}.`,
    ),
    ...unreachableRules(select),
  ];
}

/** A sentence for each rule that never applies, because an earlier one matches all of its programs. */
function unreachableRules(select: readonly Rule[]): string[] {
  return select.flatMap(({ match }, index) => {
    const first = select.findIndex((earlier, at) => at < index && covers(earlier.match, match));
    return first < 0
      ? []
      : [
          `Warning: rule ${index + 1} never applies, because rule ${first + 1} matches all of its programs; put it before rule ${first + 1}.`,
        ];
  });
}

/** Whether each program that `later` matches is certain to be matched by `earlier`. */
function covers(earlier: Match, later: Match): boolean {
  const patterns = new Map(patternsOf(later));
  return patternsOf(earlier).every(
    ([name, pattern]) => pattern === "*" || pattern === patterns.get(name),
  );
}

function patternsOf({ labels = {}, ...match }: Match): [name: string, pattern: string][] {
  const named = Object.entries(labels).map(([name, pattern]) => [`labels ${name}`, pattern]);
  return [...Object.entries(match), ...named].flatMap(([name, pattern]) =>
    name === undefined || pattern === undefined ? [] : [[name, pattern]],
  );
}

function matchText({ labels = {}, ...match }: Match): string {
  const text = labelText({ ...match, ...labels });
  return text === "" ? "all other programs" : text;
}

function ruleText({ watch, agent, remote }: Rule): string {
  if (watch === "never") {
    return "not recorded";
  }
  if (watch === "outside") {
    return "recorded from outside";
  }
  const share =
    agent?.share === undefined || agent.share === 1
      ? ""
      : ` for ${formatShare(agent.share)} of them`;
  const canary =
    agent?.canary === undefined ? "" : ` and for those with ${labelText(agent.canary.labels)}`;
  const most = agent?.most === undefined ? "" : `, at most ${agent.most} of a service at a time`;
  const window =
    agent?.window === undefined
      ? ""
      : `, from ${timeText(agent.window.fromMinute)} to ${timeText(agent.window.untilMinute)}`;
  const asked = remote === false ? ", not at the server's request" : "";
  return `the agent${share}${canary}${most}${window}${asked}`;
}

function labelText(labels: Readonly<Record<string, string | undefined>>): string {
  return Object.entries(labels)
    .filter(([, value]) => value !== undefined)
    .map(([name, value]) => `${name} ${value}`)
    .join(", ");
}

function timeText(minute: number): string {
  const digits = (value: number) => String(value).padStart(2, "0");
  return `${digits(Math.floor(minute / 60))}:${digits(minute % 60)}`;
}

/** "RSS is above 2 GiB: diagnose, ledger". */
export function triggerText({ when, captures }: Trigger): string {
  return `${conditionText(when)}: ${captures.join(", ")}`;
}

/**
 * "85 % of the memory limit is in use: gc_collect, then malloc_trim; at most 4/h of an instance (dry run)". `eviction`: which pod
 * would be evicted, or why none.
 */
export function actionsText(
  { when, allow, limit, serviceLimit, isDryRun }: ActionRule,
  eviction: string,
): string {
  const tried = allow
    .map(({ name, key }) => (name === "evict_pod" ? `${key} (${eviction})` : key))
    .join(", then ");
  const limits = `at most ${limitText(limit)} of an instance and ${limitText(serviceLimit)} of its service on this host`;
  return `${conditionText(when)}: ${tried}; ${limits}${isDryRun ? " (dry run: nothing is done)" : ""}`;
}

function conditionText(when: Condition): string {
  switch (when.kind) {
    case "growth": {
      const rate =
        "bytes" in when.rate ? formatBytesBriefly(when.rate.bytes) : formatShare(when.rate.share);
      return `RSS grows by ${rate}/h over ${formatDurationBriefly(when.windowMs)}`;
    }
    case "rss":
      return when.aboveBaseline
        ? `RSS is ${formatBytesBriefly(when.bytes)} above its baseline`
        : `RSS is above ${formatBytesBriefly(when.bytes)}`;
    case "limit":
      return `${formatShare(when.share)} of the memory limit is in use`;
    case "pressure":
      return `it waits for memory ${formatShare(when.share)} of the time`;
    case "verdict":
      return `its verdict is ${when.pattern}`;
    case "oom-kill":
      return "the OOM killer kills one of its processes";
  }
}
