/** What `tidemark watch` prints, in a terminal or a log. */

import type { WatchEvent } from "../../collect/index.js";
import {
  formatBytes,
  formatCount,
  formatDurationBriefly,
  formatMilliseconds,
} from "../../model/base/numbers.js";
import { shellWord } from "../../model/base/shell_word.js";
import { actionText } from "../../model/documents/action_text.js";
import type { ArtifactFileJson } from "../../model/documents/artifact_document.js";
import { verdictText } from "../../model/documents/verdict_text.js";
import type { WatchJson, WatchRowJson } from "../../model/documents/watch_document.js";
import { oneLine } from "../../model/errors/errors.js";
import { type Column, printTable, type Screen } from "../text/output.js";

/** Of programs in front of what applies to all of them. */
const MOST_NAMES = 8;

const GETS: Record<WatchRowJson["gets"], string> = {
  agent: "agent",
  outside: "from outside",
  never: "nothing",
};

/** `explains`: also the policy in words, and what is captured of each program. */
export function printWatchTable(
  screen: Screen,
  { programs, policy, settings = [] }: WatchJson,
  explains: boolean,
): void {
  if (explains) {
    screen.line(policy === "" ? "No policy: the defaults apply." : `${policy} is valid.`);
    for (const sentence of settings) {
      screen.line(`  ${sentence}`);
    }
    screen.line("");
  }
  if (programs.length === 0) {
    screen.line(screen.paint.dim("no Python program is running here"));
    return;
  }
  const inPods = programs.some(({ pod = "" }) => pod !== "");
  const columns: Column[] = [
    { title: "PID", align: "right" },
    { title: "SERVICE", paint: screen.paint.bold },
    { title: "VERSION" },
    ...(inPods ? [{ title: "POD" }] : []),
    { title: "PYTHON" },
    { title: "PROCESSES", align: "right" },
    { title: "RSS", align: "right" },
    { title: "RECORDED" },
    { title: "RULE" },
    { title: "COMMAND", flexible: "cutMiddle" },
  ];
  const cells = programs.map((row) => [
    String(row.pid),
    row.service,
    row.version || "-",
    ...(inPods
      ? [[row.namespace ?? "", row.pod ?? ""].filter((name) => name !== "").join("/") || "-"]
      : []),
    row.python || "?",
    formatCount(row.processes),
    formatBytes(row.rssBytes),
    GETS[row.gets],
    row.rule === null ? "default" : String(row.rule),
    row.command.join(" "),
  ]);
  printTable(screen, columns, cells);
  for (const remark of remarksOnAll(programs, explains)) {
    screen.line(screen.paint.dim(`  ${remark}`));
  }
  if (policy === "" && !explains) {
    screen.line(
      screen.paint.dim("  no policy: every program that can be attached to gets the agent"),
    );
  }
}

/** What applies to several programs, such as the lack of a permission, is named once. */
export function remarksOnAll(programs: readonly WatchRowJson[], explains: boolean): string[] {
  const named = new Map<string, string[]>();
  for (const row of programs) {
    for (const sentence of remarksOn(row, explains)) {
      const names = named.get(sentence) ?? [];
      names.push(`${oneLine(row.service)} (${row.pid})`);
      named.set(sentence, names);
    }
  }
  return [...named].map(([sentence, names]) => {
    const more = names.length - MOST_NAMES;
    const others = more > 0 ? [`and ${formatCount(more)} more`] : [];
    const all = [...names.slice(0, MOST_NAMES), ...others].join(", ");
    return `${all}${names.length === 1 ? "" : ":"} ${sentence}`;
  });
}

function remarksOn(
  { reason, remedy, collector, turn = "", triggers = [], actions = "" }: WatchRowJson,
  explains: boolean,
): string[] {
  const help = remedy === "" ? "" : `; ${remedy}`;
  return [
    ...(reason === "" ? [] : [`cannot be attached to: ${reason}${help}`]),
    ...(collector === undefined
      ? []
      : [`has the agent now, and is recorded by tidemark watch (process ${collector})`]),
    ...(turn === "" ? [] : [`has the agent only some of the time: ${turn}`]),
    ...(explains ? triggers.map((trigger) => `would be captured if ${trigger}`) : []),
    ...(explains && actions !== "" ? [`would be acted on if ${actions}`] : []),
  ];
}

/** One line for a log. */
export function watchEventText(event: WatchEvent): string {
  switch (event.kind) {
    case "attached":
      return `${nameOf(event)}: recording it with the agent to ${event.path}; it was paused for ${formatMilliseconds(event.pauseMs)}`;
    case "left":
      return `${nameOf(event)}: left as it was; its longest pause was ${formatMilliseconds(event.pauseMs)}; its recording is ${event.path}`;
    case "refused":
      return `${nameOf(event)}: recorded from outside, because the agent could not be attached: ${event.why}`;
    case "failed":
      return `${nameOf(event)}: not recorded; the next attempt is in a minute: ${event.why}`;
    case "verdict": {
      const { summary } = event.verdict;
      const ended = event.isFinal ? "ended; its last verdict: " : "";
      return `${nameOf(event)}: ${ended}${verdictText(event.verdict)}. ${summary} Details: tidemark diagnose ${shellWord(event.path)}`;
    }
    case "short-lives": {
      const { lifeMs, earlyMs, warmUpMs } = event;
      return `${nameOf(event)}: programs of this name keep ending after about ${formatDurationBriefly(lifeMs)}, before the warm-up of ${formatDurationBriefly(warmUpMs)}: some of them get the agent at an age of ${formatDurationBriefly(earlyMs)} from now on`;
    }
    case "repeated-line":
      return `${nameOf(event)}: ended; in ${formatCount(event.lives)} of ${formatCount(event.of)} lives with the agent, all too short for a verdict, the same line kept what it allocated. ${event.summary} Details: tidemark diagnose ${shellWord(event.path)}`;
    case "captured":
      return capturedText(event);
    case "not-captured":
      return `${nameOf(event)}: nothing captured: ${event.why}`;
    case "action":
      return `${nameOf(event)}: ${actionText(event.action)}`;
    case "uploaded":
      return `sent ${event.path} to the server (${formatBytes(event.bytes)})`;
    case "not-uploaded":
      return `${event.path} is not on the server: ${event.why}`;
    case "not-sent":
      return `${event.path} is not on the server: ${event.why}`;
    case "backlog-waits":
      return `${recordingsText(event.recordings)} of ended programs ${event.recordings === 1 ? "is" : "are"} not on the server yet, and will be sent once it takes them: ${event.why}`;
    case "backlog-sent":
      return `sent the rest of ${recordingsText(event.recordings)} that waited for the server`;
    case "log-failed":
      return event.why;
    case "policy":
      return event.why === ""
        ? "the policy was read again"
        : `the policy was not changed, because the new one is invalid: ${event.why}`;
    case "pods":
      return event.why === ""
        ? "names of pods are available again"
        : `names of pods are unavailable, so programs keep the names that their environment gives them: ${event.why}`;
    case "server-policy":
      return event.why === ""
        ? "the server handed out a policy: it applies where this host's policy sets nothing"
        : `the server's policy is not used, because it is invalid: ${event.why}`;
    case "request": {
      const { service, forMs, programs, why } = event;
      const given = `${formatCount(programs)} ${programs === 1 ? "program has" : "programs have"} the agent`;
      return `the server asks for a profile of ${oneLine(service)} for ${formatDurationBriefly(forMs)}: ${given}${why === "" ? "" : `; ${why}`}`;
    }
    case "no-events":
      return `new programs are found by scanning, and how a program ended is not known: the kernel's process events are unavailable: ${event.why}`;
    case "events-lost":
      return "the kernel dropped process events, because too many arrived at once: crashes at such times are not captured (reported once)";
    case "server-changed":
      return "the policy names another server: it is used after a restart of tidemark watch";
    case "watching": {
      const { withAgent, outside, not, shortLived } = event;
      const ignored = not === 0 ? "" : `, ${formatCount(not)} not recorded (tidemark watch --once)`;
      const all = withAgent + outside + not;
      return `watching ${formatCount(all)} ${all === 1 ? "program" : "programs"}: ${formatCount(withAgent)} with the agent, ${formatCount(outside)} from outside${ignored}${shortLived === 0 ? "" : `; ${formatCount(shortLived)} ended within 5 s and ${shortLived === 1 ? "was" : "were"} not recorded`}`;
    }
  }
}

function recordingsText(count: number): string {
  return `${formatCount(count)} ${count === 1 ? "recording" : "recordings"}`;
}

const CAPTURED: Record<ArtifactFileJson["capture"], string> = {
  diagnose: "its diagnosis",
  ledger: "ledger",
  census: "census of objects",
  snapshot: "heap snapshot",
  stacks: "stacks",
  gpu: "GPU snapshot",
  flight_recorder: "dump of NCCL's Flight Recorder",
  recording: "its recording",
};

function capturedText(event: Extract<WatchEvent, { kind: "captured" }>): string {
  const { reason, files, problems, path, verdict } = event;
  const captures = [...new Set(files.map(({ capture }) => CAPTURED[capture]))].join(", ");
  const judged = verdict === null ? "" : ` ${verdict.kind}: ${verdict.summary}`;
  const missing = problems.length === 0 ? "" : ` Missing: ${problems.join("; ")}.`;
  return `${nameOf(event)}: ${reason}. Captured ${captures} to ${path}.${judged}${missing}`;
}

function nameOf({ program: { root } }: Extract<WatchEvent, { program: unknown }>): string {
  const { service, version } = root.identity;
  return `${service}${version === "" ? "" : ` ${version}`} (process ${root.pid})`;
}
