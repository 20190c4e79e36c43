/**
 * For programs that compute in libraries: how many native stacks are complete, and how many pass through code without
 * unwind information: `npm run bench -- native_stacks [--looks 30]`. Without the search for a return address
 * (src/native/unwind/return_search.ts) those stacks would end there: "frames beyond" counts what would be missing.
 */
import { spawn } from "node:child_process";
import { parseArgs } from "node:util";
import {
  copyThreads,
  MemoryReader,
  openProcessMemory,
  ProcessHolder,
  StackRoom,
} from "../dist/linux/index.js";
import { ElfObject } from "../dist/native/unwind/elf_object.js";
import { MappedCode } from "../dist/native/unwind/mapped_code.js";
import { Unwinder } from "../dist/native/unwind/unwinder.js";
import { readEnvironment } from "../scripts/environment.mjs";
import { describeMachine } from "./machine.mjs";
import { markdownTable, writeResults } from "./results.mjs";

const { values: options } = parseArgs({
  options: { snapshots: { type: "string", default: "30" } },
});
const { packagesPython, torchPython } = readEnvironment();

/** Name, interpreter, code to run once, code to repeat. @type {[string, string | null, string, string][]} */
const programs = [
  [
    "NumPy, matrix product",
    packagesPython,
    "import numpy; a = numpy.random.rand(700, 700)",
    "a @ a",
  ],
  [
    "NumPy, sort and FFT",
    packagesPython,
    "import numpy; a = numpy.random.rand(2000)",
    "numpy.sort(a); numpy.fft.fft(a)",
  ],
  [
    "pandas, group and sort",
    packagesPython,
    "import numpy, pandas; d = pandas.DataFrame({'k': numpy.arange(300_000) % 997, 'v': numpy.random.rand(300_000)})",
    "d.groupby('k').v.mean(); d.sort_values('v')",
  ],
  [
    "pydantic (Rust)",
    packagesPython,
    "import pydantic\nclass M(pydantic.BaseModel): a: list[str]",
    "M.model_validate({'a': ['x'] * 500}).model_dump_json()",
  ],
  [
    "Python with -X perf",
    packagesPython,
    "import sys; sys.activate_stack_trampoline('perf')\ndef fib(n): return n if n < 2 else fib(n - 1) + fib(n - 2)",
    "fib(22)",
  ],
  [
    "SciPy, SVD",
    torchPython,
    "import numpy, scipy.linalg; a = numpy.random.rand(300, 300)",
    "scipy.linalg.svd(a)",
  ],
  ["PyTorch, matrix product", torchPython, "import torch; a = torch.rand(800, 800)", "a @ a"],
  [
    "PyTorch, convolution",
    torchPython,
    "import torch; torch.set_grad_enabled(False); m = torch.nn.Conv2d(16, 32, 3); x = torch.rand(8, 16, 96, 96)",
    "m(x)",
  ],
];

/** @param {string} python @param {string} once @param {string} again */
async function measure(python, once, again) {
  const source = `${once}\nprint("up", flush=True)\nwhile True: ${again}`;
  const child = spawn(python, ["-c", source], { stdio: ["ignore", "pipe", "inherit"] });
  await new Promise((resolve) => child.stdout.once("data", resolve));
  const pid = /** @type {number} */ (child.pid);
  const memory = openProcessMemory(pid);
  const holder = new ProcessHolder(pid);
  const figures = { stacks: 0, cut: 0, through: 0, beyond: 0 };
  try {
    for (let snapshot = 0; snapshot < Number(options.snapshots); snapshot++) {
      await new Promise((wake) => setTimeout(wake, 20 + (snapshot % 7) * 5));
      for (const { frames, cut } of await unwound(memory, holder)) {
        const gap = undescribed(memory, frames);
        figures.stacks += 1;
        figures.cut += cut === null ? 0 : 1;
        figures.through += gap < 0 ? 0 : 1;
        figures.beyond += gap < 0 ? 0 : frames.length - 1 - gap;
      }
    }
  } finally {
    holder.close();
    memory.close();
    child.kill("SIGKILL");
  }
  return figures;
}

/** @param {import("../dist/linux/index.js").Memory} memory @param {ProcessHolder} holder */
async function unwound(memory, holder) {
  await holder.hold(20_000);
  let threads;
  try {
    threads = copyThreads(memory, await holder.registers(), new StackRoom());
  } finally {
    await holder.release();
  }
  memory.refresh();
  const unwinder = new Unwinder(memory);
  try {
    return threads.map((thread) => unwinder.unwind(thread));
  } finally {
    unwinder.close();
  }
}

/**
 * The first frame, except the last, whose code has no unwind information; -1: none.
 * @param {import("../dist/linux/index.js").Memory} memory @param {readonly {address: number}[]} frames
 */
function undescribed(memory, frames) {
  const code = new MappedCode(memory);
  try {
    return frames.slice(0, -1).findIndex(({ address }) => {
      const mapping = code.mappingOf(address);
      const first = code.mappings.findLast(
        ({ inode, device, offset, start }) =>
          inode === mapping?.inode &&
          device === mapping.device &&
          offset === 0 &&
          start <= mapping.start,
      );
      return (
        mapping?.path !== "[vdso]" &&
        (first === undefined || first.inode === 0 || describe(code, first, address) === null)
      );
    });
  } finally {
    code.close();
  }
}

/** @param {MappedCode} code @param {import("../dist/linux/index.js").Mapping} first @param {number} address */
function describe(code, first, address) {
  return (
    ElfObject.read(new MemoryReader(code), first, code.fileOf(first))?.describe(address) ?? null
  );
}

const rows = [];
for (const [name, python, once, again] of programs) {
  if (python === null) {
    continue;
  }
  const { stacks, cut, through, beyond } = await measure(python, once, again);
  rows.push(
    [name, stacks, cut, through, through === 0 ? "" : Math.round(beyond / through)].map(String),
  );
  console.log(rows.at(-1)?.join("  "));
}
writeResults(
  "native_stacks",
  `## Native stacks

\`npm run bench -- native_stacks --looks ${options.snapshots}\` on ${describeMachine(packagesPython ?? "python3")}. Stacks of all
threads; those that end early; those that lead through code without a frame description, and how many frames lie beyond it.

${markdownTable(["program", "stacks", "cut", "through undescribed code", "frames beyond"], rows)}`,
);
