/** What `tidemark watch` does for a program that is short of memory: its action log, and the server's list of actions. */
import type { Bytes, Pid, TimeMs } from "../base/units.js";

/** The first four are done in the program itself, which loses nothing; the others end a process or leave the work to others. */
export const ACTIONS = [
  "on_pressure",
  "gc_collect",
  "malloc_trim",
  "empty_cache",
  "recycle_worker",
  "restart",
  "evict_pod",
  "command",
  "webhook",
] as const;
export type ActionName = (typeof ACTIONS)[number];

/**
 * refused: nothing was done, `why` says what forbade it. would-act: a dry run. running: begun, and its effect is not
 * measured yet. done: carried out and measured. failed: it was tried, `why` says what went wrong.
 */
export const ACTION_STATES = ["refused", "would-act", "running", "done", "failed"] as const;
export type ActionState = (typeof ACTION_STATES)[number];

/** A pod as the API server names it. */
export interface PodJson {
  namespace: string;
  name: string;
  uid: string;
}

/** A line of `actions.jsonl`: `tidemark.action/1`. Of several lines with the same id, the last one counts. */
export interface ActionJson {
  schema: "tidemark.action/1";
  id: string;
  timeMs: TimeMs;
  service: string;
  /** "": unknown. */
  version: string;
  host: string;
  /** Of the program's first process. */
  pid: Pid;
  action: ActionName;
  /** As the policy writes it: the action's name, or the command or address. */
  what: string;
  /** What `evict_pod` evicts; absent for other actions, and if the pod is unknown. */
  pod?: PodJson;
  state: ActionState;
  /** The condition that held, with its figures. */
  reason: string;
  /** Why it was refused or failed; otherwise "". */
  why: string;
  /** What was done, as reported; "" before. */
  outcome: string;
  /** Folder on the host with what was captured before; "": nothing was. */
  evidence: string;
  /** RSS of the program, or of its service on this host for a restart or an eviction: just before, once the effect was there, an hour later. */
  beforeBytes?: Bytes;
  afterBytes?: Bytes;
  hourLaterBytes?: Bytes;
  /** Whether memory fell enough for the action to be repeated; absent until it is measured. */
  helped?: boolean;
}

/** `tidemark.actions/1` */
export interface ActionsJson {
  schema: "tidemark.actions/1";
  /** Newest first. */
  actions: ActionJson[];
  /** What the server allows in an hour. */
  limits: { service: string; fleet: string };
}
