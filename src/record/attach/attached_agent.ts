/**
 * The agent in a running process: loaded, armed, queried and disarmed by Python code that the process itself
 * runs (agent/README.md, "Attaching to a running interpreter").
 */

import { closeSync, readFileSync, type Stats, statSync } from "node:fs";
import { pythonText } from "../../cpython/entry/exchange.js";
import { ProgramFolder } from "../../cpython/entry/program_folder.js";
import type { RemoteAnswer, RemoteExecOptions } from "../../cpython/entry/remote_exec.js";
import { orNull } from "../../linux/process/proc_files.js";
import { present } from "../../model/base/present.js";
import type { Bytes, Pid } from "../../model/base/units.js";
import { agentRefused, targetRaised } from "../../model/errors/attach_errors.js";
import { processGone, TidemarkError } from "../../model/errors/errors.js";
import { CONSTANTS } from "../../segment/layout.js";
import { enterProcess } from "../process/enter_process.js";
import { leftAgentOf } from "./left_agent.js";

/** What the agent reports about itself. */
export interface AgentStatus {
  readonly state: "armed" | "inert" | "leaving" | "off";
  readonly entry: "preloaded" | "attached" | "";
  /** `/proc/<pid>/fd/<n>` as the process opens it, or a file; "" if there is none. */
  readonly pool: string;
  readonly run: string;
  /** `full`: Python frames and small objects; the others name what is missing. */
  readonly python: string;
  readonly log: string;
}

interface ArmedAgent {
  readonly status: AgentStatus;
  /** It was already armed, and nothing was changed. */
  readonly stood: boolean;
  readonly entered: RemoteAnswer;
}

export interface ArmOptions {
  /** Path of libtidemark.so; libtidemark-keyed.so is next to it. */
  readonly libraryPath: string;
  /** The recorder's pool; the agent creates its own if it cannot open that. */
  readonly poolPath: string;
  readonly periodBytes: Bytes;
  readonly native: boolean;
  readonly copies: boolean;
  /** Whether processes that it forks are also recorded. */
  readonly follow: boolean;
}

const FIND = `import sys
agent = sys.modules.get("_tidemark_agent")
def load(path):
    import _imp
    import _frozen_importlib
    spec = _frozen_importlib.ModuleSpec("_tidemark_agent", None, origin=path)
    module = _imp.create_dynamic(spec)
    _imp.exec_dynamic(module)
    return module
`;

/** The agent of a program that was started with it has no module yet, so a module is created for the mapped library. */
const FIND_PRELOADED = `${FIND}if agent is None:
    with open("/proc/self/maps", "rb") as maps:
        words = [line.rstrip(b"\\n").split(None, 5) for line in maps]
    names = (b"/libtidemark.so", b"/libtidemark-keyed.so")
    paths = [each[5] for each in words if len(each) == 6 and each[5].endswith(names)]
    if paths:
        agent = load(sys.modules["os"].fsdecode(paths[0]))
        sys.modules["_tidemark_agent"] = agent
`;

/**
 * Loads the agent, unless it is loaded, and arms it, unless it is armed. An agent of an older version that records for
 * nobody any more is disarmed, and ours is loaded beside it. Throws TidemarkError.
 */
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
    // The loader has no static thread-local storage left and loaded nothing; the other library needs none.
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
  const words = `${options.native ? ",native" : ""}${options.copies ? ",copies" : ""}`;
  const common = `period=${options.periodBytes}${words}`;
  const own = `${common}${options.follow ? "" : ",nofollow"}`;
  const work = `${FIND}import os
def version_of(agent):
    return int(agent.status().replace(" ", "").split('"version":', 1)[1].split(",", 1)[0])
def drain(agent):
    def has(text):
        return text in agent.status().replace(" ", "")
    # Its own memory means that no recorder armed it, or that one did from where its memory cannot be opened.
    is_left = ${isLeftByOlder(pid) ? "True" : "False"} and not has('"pool":"/proc/%d/' % os.getpid())
    if has('"entry":"attached"') and not has('"state":"inert"') and (is_left or not has('"state":"armed"')):
        agent.disarm()
    return has('"entry":"attached"') and has('"state":"inert"')
wanted, spelling = ${CONSTANTS.TM_SEGMENT_VERSION}, ""
if agent is not None and version_of(agent) != wanted:
    if version_of(agent) > wanted or not drain(agent):
        return "other " + agent.status()
    # The loader returns a loaded library of the same path, even if an upgrade has replaced the file.
    agent, spelling = None, "/." * wanted
if agent is None:
    def load_memory(path):
        held = os.memfd_create("libtidemark.so", os.MFD_CLOEXEC)
        try:
            with open(path, "rb") as copy:
                text = copy.read()
            while text:
                text = text[os.write(held, text):]
            path = spelling + "/proc/self/fd/%d" % held
            return load(path), path
        finally:
            os.close(held)
    path = spelling + ${pythonText(library.path)}
    try:
        agent = load(path)
    except ImportError as error:
        # Memory may be mapped executable even if the file system is mounted noexec.
        if "failed to map" not in str(error):
            raise
        agent, path = load_memory(path)
    # The loader knows the library by this name, whether or not the file still exists later.
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
    if (entered.text.startsWith("other ")) {
      throw otherVersion(pid, entered.text.slice(6));
    }
    const stood = entered.text.startsWith("stood ");
    return { status: parseStatus(pid, entered.text.slice(6)), stood, entered };
  } catch (error) {
    throw plainer(pid, error);
  } finally {
    library.remove();
  }
}

/** Whether an older version's recorder has ended and left this armed agent: then nobody reads what it records. */
function isLeftByOlder(pid: Pid): boolean {
  return leftAgentOf(pid)?.isOlder === true;
}

/** Ends recording in the process. Returns the agent's status afterwards; null if none is loaded. */
export async function disarmAgent(
  pid: Pid,
  exec: RemoteExecOptions,
): Promise<{
  readonly status: AgentStatus | null;
  readonly was: string;
  readonly entered: RemoteAnswer;
}> {
  const work = `${FIND_PRELOADED}if agent is None:
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

/** A newer version's agent, or an older one that still records for somebody or cannot be disarmed. */
function otherVersion(pid: Pid, status: string): TidemarkError {
  const version = Number(/"version":\s*(\d+)/.exec(status)?.[1] ?? 0);
  const age = version > CONSTANTS.TM_SEGMENT_VERSION ? "a newer" : "an older";
  const rest = /"state":\s*"armed"/.test(status)
    ? "it ends by itself when its recorder has ended"
    : "it does not record";
  return agentRefused(
    pid,
    `${age} version of Tidemark has loaded its agent (${version}, this version has ${CONSTANTS.TM_SEGMENT_VERSION}); ${rest}, and a restart of the program removes it`,
  );
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
    throw agentRefused(pid, "its status is invalid");
  }
}

const COPY = ".so";

/** The installed library if the process sees the same file, otherwise a copy in its own file system. */
function visibleLibrary(pid: Pid, path: string) {
  const here = statSync(path);
  const owner = statIn(`/proc/${pid}`);
  const there = statIn(`/proc/${pid}/root${path}`);
  if (owner === null) {
    throw processGone(pid);
  }
  const same = there !== null && there.ino === here.ino && there.dev === here.dev;
  if (same && (owner.uid === process.getuid?.() || readableByAll(path))) {
    return { path, copied: false, remove() {} };
  }
  for (const folder of ProgramFolder.of(pid)) {
    try {
      closeSync(folder.create(COPY, readFileSync(path)));
      const remove = () => {
        folder.remove(COPY);
        folder.close();
      };
      return { path: folder.there(COPY), copied: true, remove };
    } catch {
      folder.close();
    }
  }
  throw agentRefused(pid, "none of its folders is writable, so the library cannot be copied to it");
}

/** null if it has ended, or its files are not readable. */
function statIn(path: string): Stats | null {
  return orNull(() => statSync(path));
}

/** True if everybody may search every folder in the path and read the file. */
function readableByAll(path: string): boolean {
  const parts = path.split("/");
  const folders = parts.slice(0, -1).map((_, index) => parts.slice(0, index + 1).join("/") || "/");
  return (
    (statSync(path).mode & 0o4) !== 0 &&
    folders.every((folder) => (statSync(folder).mode & 0o1) !== 0)
  );
}
