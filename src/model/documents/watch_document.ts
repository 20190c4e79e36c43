/** What `tidemark watch --once` prints: the Python programs of a host, and what the policy applies to each. */
import type { Bytes, Pid } from "../base/units.js";

/** A program: a Python process and its descendants that belong to the same service. */
export interface WatchRowJson {
  /** Of its first process. */
  pid: Pid;
  service: string;
  /** "": unknown; also `env` and `container`. */
  version: string;
  env: string;
  user: string;
  container: string;
  /** In Kubernetes, if the API server or the environment names them. */
  namespace?: string;
  pod?: string;
  workload?: string;
  /** Version of its Python; "" if unknown. */
  python: string;
  command: string[];
  /** Python processes of the program. */
  processes: number;
  /** Sum of RSS; shared memory counts more than once. */
  rssBytes: Bytes;
  /** Number of the rule that decides, from 1; null: no rule matches. */
  rule: number | null;
  /** `agent`: allocation sites; `outside`: only figures of /proc; `never`: nothing. */
  gets: "agent" | "outside" | "never";
  /** Why the agent cannot be attached although the policy allows it, and the remedy; "" otherwise. */
  reason: string;
  remedy: string;
  /** The running `tidemark watch` that has loaded the agent into it; absent if none has. */
  collector?: Pid;
  /** Why it has the agent only some of the time; "" if it has it all the time, or not at all. */
  turn?: string;
  /** What is captured when, one sentence for each trigger. */
  triggers?: string[];
  /** The actions that its rule allows, and when; "": none. */
  actions?: string;
}

/** `tidemark.watch/1` */
export interface WatchJson {
  schema: "tidemark.watch/1";
  /** Path of the policy; "": the default policy. */
  policy: string;
  /** The policy in words: one sentence for each of its settings and rules. */
  settings?: string[];
  /** Largest RSS first. */
  programs: WatchRowJson[];
}
