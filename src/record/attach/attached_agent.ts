/**
 * The agent in a process that runs already: loaded, armed, asked and disarmed by Python that the process
 * itself runs (agent/README.md, "Entering late").
 */

import { randomBytes } from "node:crypto";
import { chmodSync, chownSync, copyFileSync, rmSync, statSync } from "node:fs";
import { pythonText } from "../../cpython/entry/exchange.js";
import type { RemoteAnswer, RemoteExecOptions } from "../../cpython/entry/remote_exec.js";
import { present } from "../../model/base/present.js";
import type { Bytes, Pid } from "../../model/base/units.js";
import { agentRefused, targetRaised } from "../../model/errors/attach_errors.js";
import { TidemarkError } from "../../model/errors/errors.js";
import { enterProcess } from "../process/enter_process.js";

/** What the agent says of itself. */
export interface AgentStatus {
  readonly state: "armed" | "inert" | "leaving" | "off";
  readonly entry: "preloaded" | "attached" | "";
  /** `/proc/<pid>/fd/<n>` as the process opens it, or a file; "" where there is none. */
  readonly pool: string;
  readonly run: string;
  /** `full`: Python frames and small objects; the others name what is left out. */
  readonly python: string;
  readonly log: string;
}

interface ArmedAgent {
  readonly status: AgentStatus;
  /** It was armed before, and nothing was changed. */
  readonly stood: boolean;
  readonly entered: RemoteAnswer;
}

export interface ArmOptions {
  /** Of libtidemark.so; libtidemark-keyed.so lies beside it. */
  readonly libraryPath: string;
  /** The recorder's pool; the agent makes one of its own where it cannot open that. */
  readonly poolPath: string;
  readonly periodBytes: Bytes;
  readonly native: boolean;
  /** Those that it forks are recorded too. */
  readonly follow: boolean;
}

const FIND = `import sys
agent = sys.modules.get("_tidemark_agent")
`;

/** Loads the agent, unless it is loaded, and arms it, unless it is armed. Throws TidemarkError. */
export async function armAgent(
  pid: Pid,
  options: ArmOptions,
  exec: RemoteExecOptions,
): Promise<ArmedAgent> {
  try {
    return await loadAndArm(pid, options, exec);
  } catch (error) {
    if (!(error instanceof TidemarkError && /ImportError: .*static TLS/.test(error.what))) {
      throw error;
    }
    // The loader has no static thread-local storage left, and took nothing: the other library needs none.
    const libraryPath = options.libraryPath.replace(/\.so$/, "-keyed.so");
    return await loadAndArm(pid, { ...options, libraryPath }, exec);
  }
}

async function loadAndArm(
  pid: Pid,
  options: ArmOptions,
  exec: RemoteExecOptions,
): Promise<ArmedAgent> {
  const library = visibleLibrary(pid, options.libraryPath);
  const native = options.native ? ",native" : "";
  const common = `period=${options.periodBytes}${native}`;
  const own = `${common}${options.follow ? "" : ",nofollow"}`;
  const work = `${FIND}if agent is None:
    import _imp
    import _frozen_importlib
    import os
    def load(path):
        spec = _frozen_importlib.ModuleSpec("_tidemark_agent", None, origin=path)
        module = _imp.create_dynamic(spec)
        _imp.exec_dynamic(module)
        return module
    def load_memory(path):
        held = os.memfd_create("libtidemark.so", os.MFD_CLOEXEC)
        try:
            with open(path, "rb") as copy:
                text = copy.read()
            while text:
                text = text[os.write(held, text):]
            return load("/proc/self/fd/%d" % held), "/proc/self/fd/%d" % held
        finally:
            os.close(held)
    path = ${pythonText(library.path)}
    try:
        agent = load(path)
    except ImportError as error:
        # Memory may be mapped executable where the file system says noexec.
        if "failed to map" not in str(error):
            raise
        agent, path = load_memory(path)
    # The loader knows the library by this name, be there a file of that name later or not.
    agent.library_path = path
    sys.modules["_tidemark_agent"] = agent
for name in ("tidemark", "tidemark_profiler._labels"):
    labels = sys.modules.get(name)
    if hasattr(labels, "_expect_agent") and hasattr(agent, "library_path"):
        labels._expect_agent(agent.library_path)
status = agent.status()
if '"state":"armed"' in status.replace(" ", ""):
    return "stood " + status
try:
    return "fresh " + agent.arm(${pythonText(`pool=${options.poolPath},${common}`)})
except RuntimeError as error:
    if not str(error).startswith("pool:"):
        raise
    return "fresh " + agent.arm(${pythonText(own)})`;
  try {
    const entered = await enterProcess(pid, work, exec);
    const stood = entered.text.startsWith("stood ");
    return { status: parseStatus(pid, entered.text.slice(6)), stood, entered };
  } catch (error) {
    throw plainer(pid, error);
  } finally {
    library.remove();
  }
}

/** Ends recording in the process; what the agent says afterwards, null where none is loaded. */
export async function disarmAgent(
  pid: Pid,
  exec: RemoteExecOptions,
): Promise<{
  readonly status: AgentStatus | null;
  readonly was: string;
  readonly entered: RemoteAnswer;
}> {
  const work = `${FIND}if agent is None:
    return ""
was = agent.status()
return ("armed " if '"state":"armed"' in was.replace(" ", "") else "inert ") + agent.disarm()`;
  try {
    const entered = await enterProcess(pid, work, exec);
    return entered.text === ""
      ? { status: null, was: "", entered }
      : {
          status: parseStatus(pid, entered.text.slice(6)),
          was: entered.text.slice(0, 5),
          entered,
        };
  } catch (error) {
    throw plainer(pid, error);
  }
}

/** "RuntimeError: ID: sentence" is the agent's refusal, in its own words. */
function plainer(pid: Pid, error: unknown): unknown {
  if (!(error instanceof TidemarkError) || error.id !== targetRaised(pid, "").id) {
    return error;
  }
  const refusal = /RuntimeError: \w+: (.*)$/s.exec(error.what);
  return refusal ? agentRefused(pid, present(refusal[1])) : error;
}

function parseStatus(pid: Pid, text: string): AgentStatus {
  try {
    const status = JSON.parse(text) as Partial<AgentStatus>;
    return {
      state: status.state ?? "off",
      entry: status.entry ?? "",
      pool: status.pool ?? "",
      run: status.run ?? "",
      python: status.python ?? "none",
      log: status.log ?? "",
    };
  } catch {
    throw agentRefused(pid, "its status cannot be understood");
  }
}

/** The installed library where the process sees the same file, else a copy among its own files. */
function visibleLibrary(pid: Pid, path: string) {
  const root = `/proc/${pid}/root`;
  const here = statSync(path);
  const owner = statSync(`/proc/${pid}`);
  const there = statSync(`${root}${path}`, { throwIfNoEntry: false });
  const same = there !== undefined && there.ino === here.ino && there.dev === here.dev;
  if (same && (owner.uid === process.getuid?.() || readableByAll(path))) {
    return { path, copied: false, remove() {} };
  }
  for (const folder of ["/tmp", "/var/tmp", "/dev/shm", "/run"]) {
    const copy = `${folder}/.tidemark-${pid}-${randomBytes(6).toString("hex")}.so`;
    try {
      copyFileSync(path, `${root}${copy}`);
      chmodSync(`${root}${copy}`, 0o600);
      if (process.getuid?.() !== owner.uid) {
        chownSync(`${root}${copy}`, owner.uid, owner.gid);
      }
      return { path: copy, copied: true, remove: () => rmSync(`${root}${copy}`, { force: true }) };
    } catch {
      rmSync(`${root}${copy}`, { force: true });
    }
  }
  throw agentRefused(
    pid,
    "none of its folders can be written, so that it cannot be given the library",
  );
}

/** Every folder on the way may be searched, and the file read, by anybody. */
function readableByAll(path: string): boolean {
  const parts = path.split("/");
  const folders = parts.slice(0, -1).map((_, index) => parts.slice(0, index + 1).join("/") || "/");
  return (
    (statSync(path).mode & 0o4) !== 0 &&
    folders.every((folder) => (statSync(folder).mode & 0o1) !== 0)
  );
}
