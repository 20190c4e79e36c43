/** What the policy gives each program, without touching any: `tidemark watch --once`. */
import { PythonScan, userName } from "../linux/index.js";
import { monotonicMs } from "../linux/this_process/clock.js";
import type { WatchJson, WatchRowJson } from "../model/documents/watch_document.js";
import { isInShare } from "./choice.js";
import { DEFAULT_POLICY, readPolicy } from "./policy.js";
import { type Program, programsOf, ruleFor } from "./programs.js";

/** Largest RSS first. Throws TidemarkError for a policy that cannot be used. */
export function watchDocument(policyPath: string | null): WatchJson {
  const policy = policyPath === null ? DEFAULT_POLICY : readPolicy(policyPath);
  const programs = programsOf(new PythonScan().read(monotonicMs())).map((program) => {
    const rule = ruleFor(program, policy);
    const isChosen =
      rule.watch === "agent" && isInShare({ key: program.root.key, share: rule.share });
    return rowOf(
      program,
      rule.number,
      rule.watch === "agent" && !isChosen ? "outside" : rule.watch,
    );
  });
  return {
    schema: "tidemark.watch/1",
    policy: policyPath ?? "",
    programs: programs.sort((a, b) => b.rssBytes - a.rssBytes),
  };
}

function rowOf(
  { root, processes, rssBytes }: Program,
  rule: number | null,
  gets: WatchRowJson["gets"],
): WatchRowJson {
  const { ok, reason, remedy } = root.attach;
  const isRefused = gets === "agent" && !ok;
  return {
    pid: root.pid,
    service: root.identity.service,
    version: root.identity.version,
    env: root.identity.env,
    user: userName(root.uid),
    container: root.container,
    python: root.interpreter.version,
    command: [...root.command],
    processes: processes.length,
    rssBytes,
    rule,
    gets: isRefused ? "outside" : gets,
    reason: isRefused ? reason : "",
    remedy: isRefused ? remedy : "",
  };
}
