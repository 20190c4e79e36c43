/** What the policy applies to each program, without attaching to any: `tidemark watch --once` and `--check`. */
import { dirname } from "node:path";
import { PythonScan, userName } from "../linux/index.js";
import { monotonicMs } from "../linux/this_process/clock.js";
import type { Pid } from "../model/base/units.js";
import type { PodJson } from "../model/documents/action_document.js";
import type { WatchJson, WatchRowJson } from "../model/documents/watch_document.js";
import type { ServiceIdentity } from "../model/wire/identity.js";
import { otherRecorderOf } from "../record/index.js";
import { lackedForEviction } from "./actions/perform.js";
import { collectorOf } from "./kept/kept_recordings.js";
import { PodIdentities } from "./kubernetes/pod_identities.js";
import { boundsOf } from "./policy/bounds.js";
import { chooseAgents, isInShare } from "./policy/choice.js";
import { DEFAULT_POLICY, type Policy, readPolicy } from "./policy/policy.js";
import { actionsText, settingsOf, triggerText } from "./policy/policy_text.js";
import { type Chosen, isInWindow, type Program, programsOf, ruleFor } from "./policy/programs.js";

interface Row {
  readonly program: Program;
  readonly rule: Chosen;
  readonly gets: WatchRowJson["gets"];
  readonly reason: string;
  readonly remedy: string;
  readonly collector?: Pid;
}

/**
 * Largest RSS first. `onTrouble` receives the reason why names of pods are unavailable in a cluster. Rejects with
 * TidemarkError for a policy that cannot be used.
 */
export async function watchDocument(
  policyPath: string | null,
  onTrouble: (why: string) => void,
): Promise<WatchJson> {
  const policy = policyPath === null ? DEFAULT_POLICY : readPolicy(policyPath);
  const listing = new AbortController();
  const pods = new PodIdentities({
    environment: process.env,
    until: listing.signal,
    onTrouble,
  });
  await pods.ready();
  listing.abort();
  const processes = pods.allIdentified(new PythonScan().read(monotonicMs()));
  const rows = programsOf(processes).map((program) => rowOf(program, ruleFor(program, policy)));
  const turns = turnsOf(rows, policy);
  const now = new Date();
  const turnOf = ({ program: { root }, rule, gets }: Row) =>
    gets === "agent" && !isInWindow(rule.window, now)
      ? "not at this time of day"
      : (turns.get(root.key) ?? "");
  return {
    schema: "tidemark.watch/1",
    policy: policyPath ?? "",
    settings: settingsOf(policy),
    programs: rows
      .map((row) => documentOf(row, turnOf(row), pods.podOf(row.program.root)))
      .sort((a, b) => b.rssBytes - a.rssBytes),
  };
}

function rowOf(program: Program, rule: Chosen): Row {
  const { root } = program;
  const outside = (reason: string, remedy = ""): Row => {
    return { program, rule, gets: "outside", reason, remedy };
  };
  if (rule.watch !== "agent" || !isInShare({ key: root.key, share: rule.share })) {
    const gets = rule.watch === "never" ? "never" : "outside";
    return { program, rule, gets, reason: "", remedy: "" };
  }
  if (!root.attach.ok) {
    return outside(root.attach.reason, root.attach.remedy);
  }
  let recordedBy: Pick<Row, "collector"> = {};
  const other = otherRecorderOf(root.pid, (path) => {
    const collector = collectorOf(dirname(path));
    recordedBy = collector === null ? {} : { collector };
    return collector !== null;
  });
  return other === null
    ? { program, rule, gets: "agent", reason: "", remedy: "", ...recordedBy }
    : outside(`${other.what}: ${other.why}`, other.next);
}

/** By key of the program: the reason why it takes turns with others. */
function turnsOf(rows: readonly Row[], policy: Policy): Map<string, string> {
  const bounds = boundsOf(policy);
  const ready = rows.filter(({ gets }) => gets === "agent");
  const { start } = chooseAgents(
    ready.map(({ program: { root }, rule: { share, most } }) => ({
      key: root.key,
      service: root.identity.service,
      ...{ share, most, isReady: true, sinceMs: null, leftMs: null, turns: 0 },
    })),
    bounds,
    0,
  );
  if (start.length === ready.length) {
    return new Map();
  }
  return new Map(
    ready.flatMap(({ program: { root }, rule: { most } }): [string, string][] => {
      const { service } = root.identity;
      const alike = ready.filter(({ program }) => program.root.identity.service === service).length;
      if (alike > most) {
        return [[root.key, `${alike} programs of this service share ${most} places`]];
      }
      return ready.length > bounds.agents
        ? [[root.key, `${ready.length} programs share ${bounds.agents} places`]]
        : [];
    }),
  );
}

function documentOf(
  { program, rule, ...row }: Row,
  turn: string,
  pod: PodJson | undefined,
): WatchRowJson {
  const { root, processes, rssBytes } = program;
  return {
    pid: root.pid,
    service: root.identity.service,
    version: root.identity.version,
    env: root.identity.env,
    user: userName(root.uid),
    container: root.container,
    ...namesOf(root.identity),
    python: root.interpreter.version,
    command: [...root.command],
    processes: processes.length,
    rssBytes,
    rule: rule.number,
    ...row,
    turn,
    triggers: rule.triggers.map(triggerText),
    actions: rule.actions === null ? "" : actionsText(rule.actions, evictionText(pod)),
  };
}

function evictionText(pod: PodJson | undefined): string {
  return pod === undefined
    ? `never: ${lackedForEviction(pod, true)}`
    : `pod ${pod.namespace}/${pod.name}`;
}

function namesOf({ namespace, pod, workload }: ServiceIdentity) {
  return pod === "" ? {} : { namespace, pod, workload };
}
