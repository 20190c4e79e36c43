import { code } from "./growing.js";
import { callsMatching, madeAgain } from "./made_again.js";
import type { Rule } from "./rule.js";

export const processNotWaited: Rule = {
  id: "TM-L045",
  name: "process-not-waited-for",
  severity: "warning",
  finds:
    "A child process started in a loop or a request handler, without a call that waits for its end.",
  why: "A finished child stays a zombie until it is waited for. Its pipes and its `Popen` object stay as well, in `subprocess._active`.",
  speed: "One entry in the process table and up to three descriptors for each call.",
  before: `
import subprocess

def handle(request):
    subprocess.Popen(["convert", request.path])
`,
  after: `
import subprocess

def handle(request):
    subprocess.run(["convert", request.path], check=True)
`,
  ignore: "Another part of the program reaps its children.",
  proof:
    "`tidemark ps` lists the children; `diagnose` reports the kind `child-growth` or `handle-leak`.",
  *check(file) {
    for (const call of callsMatching(STARTERS, file)) {
      const repeat = madeAgain(call, file);
      const reaps = file.module.callsOf("waitpid", "wait3", "wait4").length > 0;
      if (repeat !== null && !reaps && file.resources.fateOf(call.node) === "open") {
        yield {
          node: call.node,
          message: `${code(call.callee.text)} starts a process ${repeat.text}, and nothing waits for it`,
        };
      }
    }
  },
};

const STARTERS =
  /^(?:subprocess\.Popen|(?:torch\.)?multiprocessing\.(?:Process|context\.Process|get_context\(\)\.Process)|asyncio\.create_subprocess_(?:exec|shell)|os\.(?:popen|spawn\w+))$/;
