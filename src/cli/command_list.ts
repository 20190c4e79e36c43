/** Made by `npm run generate` from the files of commands/. Do not edit. */
import type { Command } from "commander";
import type { CommandEntry } from "./options/about.js";

/** Every command, by name. */
export const COMMANDS: readonly CommandEntry<Command>[] = [
  {
    name: "allocators",
    group: "record",
    summary: "compare a program's memory under other allocators",
    load: () => import("./commands/allocators.js"),
  },
  {
    name: "asan",
    group: "record",
    summary: "run a program under AddressSanitizer and explain its errors",
    load: () => import("./commands/asan.js"),
  },
  {
    name: "attach",
    group: "record",
    summary: "record a running process, then leave it as it was",
    load: () => import("./commands/attach.js"),
  },
  {
    name: "check",
    group: "record",
    summary: "run a program and fail if it takes, keeps or leaks too much memory",
    load: () => import("./commands/check.js"),
  },
  {
    name: "completion",
    group: "machine",
    summary: "print the shell completion script for bash, zsh or fish",
    load: () => import("./commands/completion.js"),
  },
  {
    name: "detach",
    group: "record",
    summary: "clean up after a recorder that crashed",
    load: () => import("./commands/detach.js"),
  },
  {
    name: "diagnose",
    group: "recordings",
    summary: "report whether memory leaks, where, how fast, and what to do",
    load: () => import("./commands/diagnose.js"),
  },
  {
    name: "diff",
    group: "recordings",
    summary: "show what grew between two recordings, or two times of one",
    load: () => import("./commands/diff.js"),
  },
  {
    name: "doctor",
    group: "machine",
    summary: "check what works on this machine, and how to enable the rest",
    load: () => import("./commands/doctor.js"),
  },
  {
    name: "export",
    group: "recordings",
    summary: "write a recording in another tool's format",
    load: () => import("./commands/export.js"),
  },
  {
    name: "fleet",
    group: "fleet",
    summary: "query a server about its services: instances, growth, verdicts, differences",
    load: () => import("./commands/fleet.js"),
  },
  {
    name: "gpu",
    group: "devices",
    summary: "show what uses CUDA memory: a snapshot, a process or a log",
    load: () => import("./commands/gpu.js"),
  },
  {
    name: "heap",
    group: "processes",
    summary: "list Python objects by type, and what holds them",
    load: () => import("./commands/heap.js"),
  },
  {
    name: "import",
    group: "recordings",
    summary: "convert a file of another tool, or an agent's pool file, to a recording",
    load: () => import("./commands/import.js"),
  },
  {
    name: "ledger",
    group: "processes",
    summary: "show where each byte of a process's RSS is",
    load: () => import("./commands/ledger.js"),
  },
  {
    name: "lines",
    group: "recordings",
    summary: "show memory by source line",
    load: () => import("./commands/lines.js"),
  },
  {
    name: "lint",
    group: "source",
    summary: "find leak patterns in Python source",
    load: () => import("./commands/lint.js"),
  },
  {
    name: "live",
    group: "processes",
    summary: "show a recording in progress in a live view",
    load: () => import("./commands/live.js"),
  },
  {
    name: "memcheck",
    group: "record",
    summary: "run a program under Valgrind and explain its memory errors",
    load: () => import("./commands/memcheck.js"),
  },
  {
    name: "open",
    group: "recordings",
    summary: "show a recording in the browser, also while it is recorded",
    load: () => import("./commands/open.js"),
  },
  {
    name: "plan",
    group: "devices",
    summary: "plan the memory that training or serving a model takes",
    load: () => import("./commands/plan.js"),
  },
  {
    name: "ps",
    group: "processes",
    summary: "list the Python processes of this host and their memory",
    load: () => import("./commands/ps.js"),
  },
  {
    name: "report",
    group: "recordings",
    summary: "write a recording as one self-contained HTML page",
    load: () => import("./commands/report.js"),
  },
  {
    name: "run",
    group: "record",
    summary: "run a program and record where its memory goes",
    load: () => import("./commands/run.js"),
  },
  {
    name: "serve",
    group: "fleet",
    summary: "keep the recordings of many programs, and show their services",
    load: () => import("./commands/serve.js"),
  },
  {
    name: "stacks",
    group: "processes",
    summary: "print the Python stacks of all threads and asyncio tasks",
    load: () => import("./commands/stacks.js"),
  },
  {
    name: "summary",
    group: "recordings",
    summary: "summarize a recording at its end, its peak or any other time",
    load: () => import("./commands/summary.js"),
  },
  {
    name: "top",
    group: "processes",
    summary: "show the Python processes of this host in a live view",
    load: () => import("./commands/top.js"),
  },
  {
    name: "watch",
    group: "fleet",
    summary: "record every Python program of this host, according to a policy",
    load: () => import("./commands/watch.js"),
  },
];
