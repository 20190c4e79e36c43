/** The catalogue of advice. Ids are stable; docs/advice.md is generated from it. */
import type { Millis } from "../../model/base/units.js";
import type {
  AdviceJson,
  HolderJson,
  VerdictKind,
} from "../../model/documents/diagnosis_document.js";

import { watchFor } from "./window_needed.js";

export interface Advice {
  readonly id: string;
  readonly text: string;
  /** When the advice applies, as shown on the docs page. */
  readonly when: string;
  readonly kinds: readonly VerdictKind[];
  /** Restrict the advice to holder types, or to the functions and files of a suspect's stacks, that match. */
  readonly holder?: RegExp;
  readonly code?: RegExp;
  /** Leaves it out where an entry for such code applies. */
  readonly unlessCode?: RegExp;
  readonly before: string;
  readonly after: string;
}

/** Servers and pools that can replace their workers regularly. */
const WORKER_FRAMEWORK =
  /\b(?:gunicorn|celery|billiard|uvicorn)\b|multiprocessing\/pool\.py|concurrent\/futures\/process\.py/;

/** Used if no rule estimates the length of the window. */
const USUAL_WATCH_MS: Millis = 600_000;

export const ADVICE: readonly Advice[] = [
  {
    id: "TM-A001",
    text: "Bound the list or deque: keep the last N entries, or write older ones to disk.",
    when: "A list or deque that lives as long as the program grows.",
    kinds: ["python-leak", "child-growth"],
    holder: /^(?:list|collections\.deque|deque|queue)/,
    before: "history = []\nhistory.append(record)",
    after: "history = collections.deque(maxlen=10_000)\nhistory.append(record)",
  },
  {
    id: "TM-A002",
    text: "Bound the dict: evict the oldest entry, or let entries expire.",
    when: "A dict gains a key for each request, user or document, and keys are never removed.",
    kinds: ["python-leak", "child-growth"],
    holder: /^(?:dict|collections\.(?:OrderedDict|defaultdict|Counter))/,
    before: "stats[key] = value",
    after: "stats[key] = value\nwhile len(stats) > LIMIT:\n    stats.pop(next(iter(stats)))",
  },
  {
    id: "TM-A003",
    text: "Bound the cache (lru_cache(maxsize=...)), and do not cache methods, whose key includes self.",
    when: "functools.lru_cache has no bound, or decorates a method and keeps every self alive.",
    kinds: ["python-leak"],
    holder: /lru_cache/,
    before: "@lru_cache(maxsize=None)\ndef permissions(self, scope): ...",
    after: "@lru_cache(maxsize=1024)\ndef permissions(user_id, scope): ...",
  },
  {
    id: "TM-A007",
    text: "The buffer itself grows: keep its last part, or write out older parts.",
    when: "An array, a bytearray or a table is extended for as long as the program runs.",
    kinds: ["python-leak", "child-growth"],
    holder: /^(?:numpy\.ndarray|bytearray|array\.array|_?io\.(?:BytesIO|StringIO)|pandas\.)/,
    before: "rows = numpy.concatenate([rows, batch])",
    after: "rows = numpy.concatenate([rows, batch])[-LIMIT:].copy()",
  },
  {
    id: "TM-A008",
    text: "Clear the results of earlier cells, which IPython keeps in Out, _oh and _5: %reset -f out. End a cell with a semicolon to keep no result, or set c.InteractiveShell.cache_size = 0.",
    when: "IPython or Jupyter keeps the result of each cell that is run.",
    kinds: ["python-leak", "graph-retention"],
    holder: /^dict of IPython results$/,
    before: "load(path)",
    after: "load(path);   # or: %reset -f out",
  },
  {
    id: "TM-A004",
    text: "Find out what the container is for, and remove entries that are no longer needed.",
    when: "Objects accumulate in a container of another type.",
    kinds: ["python-leak", "child-growth"],
    before: "registry.add(listener)",
    after: "registry.add(listener)\n...\nregistry.discard(listener)   # or weakref.WeakSet()",
  },
  {
    id: "TM-A005",
    text: "Store the text of the error (traceback.format_exc()), not the exception. An exception refers to its traceback, which refers to the locals of every frame.",
    when: "Exceptions or sys.exc_info() are stored, and tracebacks and frames accumulate with them.",
    kinds: [],
    before: "errors.append(sys.exc_info())",
    after: "errors.append(traceback.format_exc())",
  },
  {
    id: "TM-A006",
    text: "Bound the queue (maxsize=...), so that the producer waits, or add consumers until they keep up.",
    when: "A backlog grows: items enter a queue faster than they are consumed.",
    kinds: [],
    before: "jobs = queue.Queue()",
    after: "jobs = queue.Queue(maxsize=1000)   # put() waits while it is full",
  },
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
    when: "A tensor that requires grad is kept with its autograd graph: in a list, by a hook, on ctx, or in .grad.",
    kinds: ["graph-retention"],
    before: "losses.append(loss)",
    after: "losses.append(loss.item())",
  },
  {
    id: "TM-A021",
    text: "Compute gradients with torch.autograd.grad(..., create_graph=True) instead of backward(create_graph=True).",
    when: "backward(create_graph=True) creates a reference cycle between parameters and their gradients.",
    kinds: ["graph-retention"],
    code: /backward/,
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
    before: "block = SharedMemory(create=True, size=n)",
    after: "block = SharedMemory(create=True, size=n)\n...\nblock.close()\nblock.unlink()",
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
    id: "TM-A070",
    text: "Close each in the code that opened it: use a with block, contextlib.closing, or a bounded pool.",
    when: "Open files, sockets, connections or threads accumulate.",
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
    text: "Raise the limit if the program needs that much at its peak. Otherwise, check which objects held most of the memory at the end.",
    when: "A process was killed because its container or control group reached its limit.",
    kinds: ["out-of-memory"],
    before: "docker run --memory 400m app",
    after: "docker run --memory 600m app   # or: tidemark run app.py, to see what uses the memory",
  },
  {
    id: "TM-A096",
    text: "Raise the limit (ulimit -v) if the program needs that much at its peak; otherwise, check which objects held most of the memory at the end.",
    when: "An allocation failed because the process had reached its own limit (ulimit -v, ulimit -d).",
    kinds: [],
    before: "ulimit -v 2000000; python app.py",
    after:
      "ulimit -v 3000000; python app.py   # KiB; or: tidemark run app.py, to see what uses the memory",
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
    id: "TM-A091",
    text: "Record about 20 steps of the job before you write the snapshot; they show what grows.",
    when: "A snapshot without a history, or with too few steps in it.",
    kinds: [],
    before: 'torch.cuda.memory._dump_snapshot("job.pickle")',
    after:
      'torch.cuda.memory._record_memory_history()\nfor step in range(20): train()\ntorch.cuda.memory._dump_snapshot("job.pickle")',
  },
];

/** TM-A090 with the window length from the verdict. */
export function watchLongerAdvice(neededMs: Millis): AdviceJson {
  return { id: "TM-A090", text: watchLonger(neededMs) };
}

function watchLonger(neededMs: Millis): string {
  return `Watch longer, or under load: tidemark diagnose PID --for ${watchFor(neededMs)}.`;
}

/** Throws if the catalogue has no such id. */
export function adviceById(wanted: string): AdviceJson {
  const found = ADVICE.find(({ id }) => id === wanted);
  if (!found) {
    throw new Error(`no advice ${wanted}`);
  }
  return { id: found.id, text: found.text };
}

/** Advice that matches a verdict and, if known, its holder: most specific first, at most two. */
export function adviceFor(
  kind: VerdictKind,
  holder: HolderJson | null,
  code: string,
): AdviceJson[] {
  const fitting = ADVICE.filter(
    (advice) =>
      advice.kinds.includes(kind) &&
      (advice.holder === undefined || (holder !== null && advice.holder.test(holder.type))) &&
      (advice.code === undefined || advice.code.test(code)) &&
      !advice.unlessCode?.test(code),
  );
  const narrow = fitting.filter(({ holder, code, unlessCode }) => holder ?? code ?? unlessCode);
  return [...narrow, ...fitting.filter((advice) => !narrow.includes(advice))]
    .slice(0, 2)
    .map(({ id, text }) => ({ id, text }));
}
