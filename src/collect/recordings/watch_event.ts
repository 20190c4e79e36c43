/** What a collector reports while it runs, for a log that people read. */
import type { Millis } from "../../model/base/units.js";
import type { DiagnosisJson } from "../../model/documents/diagnosis_document.js";
import type { ActionEvent } from "../actions/actions.js";
import type { CaptureEvent } from "../captures/captures.js";
import type { BacklogEvent } from "../kept/backlog.js";
import type { UploadEvent } from "../kept/uploads.js";
import type { Program } from "../policy/programs.js";

export type WatchEvent =
  /** `pauseMs`: the longest pause of the program so far, when attaching and detaching. */
  | {
      readonly kind: "attached" | "left";
      readonly program: Program;
      readonly path: string;
      readonly pauseMs: Millis;
    }
  /** "refused": it is recorded from outside, not with the agent. "failed": it is not recorded. Both are tried again. */
  | { readonly kind: "refused" | "failed"; readonly program: Program; readonly why: string }
  | {
      readonly kind: "verdict";
      readonly program: Program;
      readonly path: string;
      readonly verdict: DiagnosisJson["verdict"];
      /** The program has ended. */
      readonly isFinal: boolean;
    }
  /** Programs of its name keep ending before the warm-up is over: some of them get the agent earlier from now on. */
  | {
      readonly kind: "short-lives";
      readonly program: Program;
      readonly lifeMs: Millis;
      readonly earlyMs: Millis;
      readonly warmUpMs: Millis;
    }
  /** A line kept what it allocated in several of such programs, each of which was too short for a verdict. */
  | {
      readonly kind: "repeated-line";
      readonly program: Program;
      readonly path: string;
      /** In so many lives, of those that were diagnosed. */
      readonly lives: number;
      readonly of: number;
      readonly summary: string;
    }
  | CaptureEvent
  | ActionEvent
  | UploadEvent
  | BacklogEvent
  /** The log of actions cannot be written. */
  | { readonly kind: "log-failed"; readonly why: string }
  /** The policy was read again; `why`: the new one is invalid, and the old one remains in force. */
  | { readonly kind: "policy"; readonly why: string }
  /** Names of pods are unavailable, and why; "": they are available again. */
  | { readonly kind: "pods"; readonly why: string }
  /** The server handed out a policy; `why`: it is invalid, and what was in force before remains. */
  | { readonly kind: "server-policy"; readonly why: string }
  /** The server asks for a profile of a service that runs here; `why`: what keeps programs of it from having the agent. */
  | {
      readonly kind: "request";
      readonly service: string;
      readonly forMs: Millis;
      readonly programs: number;
      readonly why: string;
    }
  /** The kernel reports no starts and ends of processes, and why. */
  | { readonly kind: "no-events"; readonly why: string }
  /** The kernel reported more of them than could be read. */
  | { readonly kind: "events-lost" }
  /** The policy names another server now; it is used after a restart. */
  | { readonly kind: "server-changed" }
  | {
      readonly kind: "watching";
      readonly withAgent: number;
      readonly outside: number;
      readonly not: number;
      /** Python programs that ended too soon to be recorded, since the last event of this kind; 0 if unknown. */
      readonly shortLived: number;
    };
