/** Advice about everything except the holders of Python objects (holder_advice.ts). */
import type { Millis } from "../../model/base/units.js";
import type { Advice, AdviceFacts } from "./advice_entry.js";
import { watchFor } from "./window_needed.js";

/** Servers and pools that can replace their workers regularly. */
const WORKER_FRAMEWORK =
  /\b(?:gunicorn|celery|billiard|uvicorn)\b|multiprocessing\/pool\.py|concurrent\/futures\/process\.py/;

/** Used if no rule estimates the length of the window. */
const USUAL_WATCH_MS: Millis = 600_000;

/** Shared pages of mmap.mmap(-1, n), which has no name to unlink. */
const ofUnnamedMapping = ({ code }: AdviceFacts): boolean =>
  /\bnew_mmap_object\b/.test(code) && !/shared_memory\.py/.test(code);

/** The process of a multiprocessing.Manager, whose dicts and lists are the program's own. */
const ofManager = ({ holder }: AdviceFacts): boolean =>
  holder?.path.includes("._manager_server") ?? false;

/** Kept by a parameter's gradient. */
const isGradient = ({ holder }: AdviceFacts): boolean =>
  holder?.path.some((step) => /\.grad\b/.test(step)) ?? false;

export const OTHER_ADVICE: readonly Advice[] = [
  {
    id: "TM-A010",
    text: "Let the garbage collector run (gc.enable(), a lower threshold), or break the cycle with a weak reference.",
    when: "Unreachable cycles accumulate because the collector is disabled, frozen or rarely runs.",
    kinds: ["cycle-garbage"],
    before: "child.parent = parent",
    after: "child.parent = weakref.ref(parent)",
  },
  {
    id: "TM-A020",
    text: "Keep numbers, not tensors: loss.item(), output.detach(); run inference under torch.inference_mode().",
    named: (name) =>
      `Keep numbers in ${name}, not tensors: loss.item(), output.detach(); run inference under torch.inference_mode().`,
    when: "A tensor that requires grad is kept with its autograd graph: in a list, by a hook or on ctx.",
    kinds: ["graph-retention"],
    fits: (facts) => !isGradient(facts),
    before: "losses.append(loss)",
    after: "losses.append(loss.item())",
  },
  {
    id: "TM-A021",
    text: "If the program calls backward(create_graph=True), compute gradients with torch.autograd.grad(..., create_graph=True) instead.",
    when: "backward(create_graph=True) creates a reference cycle between parameters and their gradients.",
    kinds: ["graph-retention"],
    fits: (facts) => isGradient(facts) || (facts.holder === null && /backward/.test(facts.code)),
    before: "loss.backward(create_graph=True)",
    after: "grads = torch.autograd.grad(loss, parameters, create_graph=True)",
  },
  {
    id: "TM-A030",
    text: "Free the memory that the native code returns, or delete what a C library keeps for an object (rows of an in-memory database, nodes of a document, buffers of a connection). tidemark run --native shows the C stack that allocates it.",
    when: "Memory allocated by C or C++ code grows, and no Python object was found that leads to it.",
    kinds: ["native-leak"],
    before: "result = lib.encode(data)",
    after:
      "result = lib.encode(data)\ntry:\n    use(result)\nfinally:\n    lib.encode_free(result)",
  },
  {
    id: "TM-A031",
    text: "Start the program with tidemark run, which also sees calls of malloc through pointers that are resolved early; tidemark run --native shows their C stack.",
    when: "Memory allocated by malloc grows, but after an attach no sampled call made it.",
    kinds: [],
    before: "tidemark attach 4242",
    after: "tidemark run --native app.py",
  },
  {
    id: "TM-A040",
    text: "Return the freed memory to the kernel: malloc_trim(0) when the program is idle, MALLOC_ARENA_MAX=2, or another allocator (jemalloc). Allocate long-lived objects before short-lived ones.",
    when: "The program freed the memory, but the allocator keeps it.",
    kinds: ["allocator-retention"],
    before: "python app.py",
    after: "MALLOC_ARENA_MAX=2 python app.py",
  },
  {
    id: "TM-A050",
    text: "Close each mapping after its last use, and release all views of it.",
    when: "Mapped files accumulate.",
    kinds: ["file-growth"],
    before: "segments[name] = mmap.mmap(file.fileno(), 0)",
    after: "with mmap.mmap(file.fileno(), 0) as segment:\n    ...",
  },
  {
    id: "TM-A051",
    text: "Call close() in every process and unlink() in one after the block's last use.",
    when: "Shared memory blocks accumulate.",
    kinds: ["shm-growth"],
    fits: (facts) => !ofUnnamedMapping(facts),
    before: "block = SharedMemory(create=True, size=n)",
    after: "block = SharedMemory(create=True, size=n)\n...\nblock.close()\nblock.unlink()",
  },
  {
    id: "TM-A052",
    text: "Close each mapping after its last use, and release all views of it.",
    when: "Shared mappings without a file (mmap.mmap(-1, n)) accumulate.",
    kinds: ["shm-growth"],
    fits: ofUnnamedMapping,
    before: "blocks.append(mmap.mmap(-1, size))",
    after: "with mmap.mmap(-1, size) as block:\n    ...",
  },
  {
    id: "TM-A060",
    text: "Store read-only data of workers in arrays (NumPy, Arrow, torch) instead of lists of objects, and call gc.freeze() before the fork.",
    when: "Shared pages become private after a fork because reading Python objects updates their reference counts.",
    kinds: ["copy-on-write"],
    before: "self.rows = [(text, label), ...]",
    after: "self.texts = numpy.array(texts)\nself.labels = numpy.array(labels)",
  },
  {
    id: "TM-A061",
    text: "Fix the leak in the worker; until then, let each worker exit after N jobs so that its parent starts a new one.",
    when: "Worker processes grow, and no server or pool listed below starts them.",
    kinds: ["child-growth"],
    unlessCode: WORKER_FRAMEWORK,
    fits: (facts) => !ofManager(facts),
    before: "while True:\n    work(jobs.get())",
    after: "for _ in range(1000):\n    work(jobs.get())",
  },
  {
    id: "TM-A062",
    text: "Fix the leak in the worker; until then, let gunicorn restart each worker after N requests.",
    when: "gunicorn workers grow.",
    kinds: ["child-growth"],
    code: /\bgunicorn\b/,
    before: "gunicorn app:app",
    after: "gunicorn --max-requests 1000 --max-requests-jitter 100 app:app",
  },
  {
    id: "TM-A063",
    text: "Fix the leak in the worker; until then, let celery replace each worker process after N tasks.",
    when: "celery workers grow.",
    kinds: ["child-growth"],
    code: /\b(?:celery|billiard)\b/,
    before: "celery -A app worker",
    after: "celery -A app worker --max-tasks-per-child=1000",
  },
  {
    id: "TM-A064",
    text: "Fix the leak in the worker; until then, let uvicorn restart each worker after N requests.",
    when: "uvicorn workers grow.",
    kinds: ["child-growth"],
    code: /\buvicorn\b(?!.*\bgunicorn\b)/,
    before: "uvicorn app:app --workers 4",
    after: "uvicorn app:app --workers 4 --limit-max-requests 1000",
  },
  {
    id: "TM-A065",
    text: "Fix the leak in the worker; until then, let the pool replace each worker after N tasks.",
    when: "Workers of a multiprocessing.Pool or of a ProcessPoolExecutor (Python 3.11 and later: max_tasks_per_child) grow.",
    kinds: ["child-growth"],
    code: /multiprocessing\/pool\.py|concurrent\/futures\/process\.py/,
    before: "multiprocessing.Pool(8)",
    after: "multiprocessing.Pool(8, maxtasksperchild=1000)",
  },
  {
    id: "TM-A071",
    text: "Let each thread end: give what it waits for a timeout or set its event, and start threads from a bounded ThreadPoolExecutor.",
    when: "Threads accumulate.",
    kinds: ["handle-leak"],
    fits: ({ handles }) => handles === "threads",
    insteadOf: ["TM-A070"],
    before: "threading.Thread(target=watch, args=(event,)).start()   # event.wait()",
    after:
      "executor.submit(watch, event)   # executor = ThreadPoolExecutor(max_workers=20); event.wait(timeout=30)",
  },
  {
    id: "TM-A072",
    text: "Close each socket in the code that opened it (a with block, contextlib.closing), or reuse connections from a bounded pool.",
    when: "Open sockets or connections accumulate.",
    kinds: ["handle-leak"],
    fits: ({ handles }) => handles === "open sockets",
    insteadOf: ["TM-A070"],
    before: "connection = socket.create_connection(address)",
    after: "with contextlib.closing(socket.create_connection(address)) as connection:\n    ...",
  },
  {
    id: "TM-A073",
    text: "Wait for each child process and close its pipes: subprocess.run(), a with block around Popen, or os.waitpid() after os.fork().",
    when: "Child processes that have ended are never waited for, or open files accumulate that are their pipes.",
    kinds: ["handle-leak"],
    fits: ({ handles, code = "" }) =>
      handles === "unwaited children" ||
      (handles === "open files" && /\bsubprocess(?:\.py)?\b/.test(code)),
    insteadOf: ["TM-A070"],
    before: "process = subprocess.Popen(command, stdout=subprocess.PIPE)",
    after:
      "with subprocess.Popen(command, stdout=subprocess.PIPE) as process:\n    output, _ = process.communicate()",
  },
  {
    id: "TM-A070",
    text: "Close each in the code that opened it: use a with block, contextlib.closing, or a bounded pool.",
    when: "Open files accumulate, or handles of several kinds.",
    kinds: ["handle-leak"],
    before: "file = open(path)",
    after: "with open(path) as file:\n    ...",
  },
  {
    id: "TM-A080",
    text: "Store the numbers in an array (array.array, NumPy, a tensor): 8 bytes each, or fewer.",
    when: "A list or dict holds hundreds of thousands of ints or floats as separate objects. This is not a leak.",
    kinds: [],
    before: "prices = [float(row[3]) for row in rows]",
    after: 'prices = array.array("d", (float(row[3]) for row in rows))',
  },
  {
    id: "TM-A090",
    text: watchLonger(USUAL_WATCH_MS),
    when: "The window was too short or too quiet.",
    kinds: ["insufficient-evidence"],
    before: "tidemark diagnose 4242",
    after: `tidemark diagnose 4242 --for ${watchFor(USUAL_WATCH_MS)}`,
  },
  {
    id: "TM-A095",
    text: "Find out what filled the memory (the suspects), and bound it. Raise the limit only if the program needs that much at its peak.",
    when: "A process was killed because its container or control group reached its limit.",
    kinds: ["out-of-memory"],
    before: "docker run --memory 400m app",
    after:
      "tidemark run app.py   # shows what fills the memory\ndocker run --memory 600m app   # if it needs that much",
  },
  {
    id: "TM-A096",
    text: "Find out what filled the memory (the suspects), and bound it. Raise the limit (ulimit -v) only if the program needs that much at its peak.",
    when: "An allocation failed because the process had reached its own limit (ulimit -v, ulimit -d).",
    kinds: [],
    before: "ulimit -v 2000000; python app.py",
    after:
      "tidemark run app.py   # shows what fills the memory\nulimit -v 3000000; python app.py   # KiB; if it needs that much",
  },
  {
    id: "TM-A097",
    text: "Give the machine more memory, or limit the program with a control group.",
    when: "The kernel killed a process because the machine ran out of memory.",
    kinds: [],
    before: "python app.py",
    after: "systemd-run --scope -p MemoryMax=8G python app.py   # other programs survive",
  },
  {
    id: "TM-A098",
    text: "Record it with the agent, which shows the lines that allocate: tidemark attach PID.",
    when: "The program was only watched from outside, and what grows cannot be seen from there.",
    kinds: [],
    before: "tidemark diagnose 4242 --no-agent",
    after: "tidemark diagnose 4242   # or: tidemark attach 4242",
  },
  {
    id: "TM-A091",
    text: "Record about 20 steps of the job before you write the snapshot; they show what grows.",
    when: "A snapshot without a history, or with too few steps in it.",
    kinds: [],
    before: 'torch.cuda.memory._dump_snapshot("job.pickle")',
    after:
      'torch.cuda.memory._record_memory_history()\nfor step in range(20): train()\ntorch.cuda.memory._dump_snapshot("job.pickle")',
  },
];

/** `next`: the command line of a program that has ended, as for `tidemark run`; "" while it runs. */
export function watchLonger(neededMs: Millis, next = ""): string {
  return next === ""
    ? `Watch longer, or under load: tidemark diagnose PID --for ${watchFor(neededMs)}.`
    : `The program has ended. Record it again, for ${watchFor(neededMs).replace(/[a-z]+/, " $&")} or more: tidemark run ${next}`;
}
