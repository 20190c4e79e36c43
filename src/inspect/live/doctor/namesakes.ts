/** Other programs and packages named tidemark, such as a distribution on PyPI with an executable of that name. */
import { readFileSync, realpathSync } from "node:fs";
import { basename, dirname, join, resolve } from "node:path";
import { LAUNCHER_PATH } from "../../../linux/installation.js";
import type { DoctorCheckJson } from "../../../model/documents/doctor_document.js";
import { namesIn, onPath, type StartPlace } from "../../../record/index.js";
import { limited, works } from "./check.js";

/** A line of Tidemark's launcher that identifies it wherever pip or npm copies it. */
const LAUNCHER_MARK = /tidemark-guard" host --/;
const LARGEST_LAUNCHER = 1 << 16;

export function namesakeCheck(place: StartPlace): DoctorCheckJson {
  const first = onPath("tidemark", place);
  if (first === null) {
    return works("installation", "command", `${LAUNCHER_PATH} (not on PATH)`);
  }
  return isTidemark(first)
    ? works("installation", "command", first)
    : limited("installation", "command", `tidemark on PATH is another program: ${first}`, {
        effect: "`tidemark` starts that program",
        remedy: "run tidemark-profiler, or put its folder first on PATH",
      });
}

/** Sentences about other things named tidemark: on PATH, and in the packages of the program's Python. */
export function namesakes(python: string, place: StartPlace): string[] {
  const first = onPath("tidemark", place);
  const path = onPath(python, place);
  return [
    ...(first === null || isTidemark(first)
      ? []
      : [
          `The tidemark on PATH, ${first}, is another program; this one is also installed as tidemark-profiler.`,
        ]),
    ...(path === null ? [] : strangeDistributions(path)).map(
      (distribution) =>
        `The package in ${distribution} belongs to another project; to set labels, import tidemark_profiler.`,
    ),
  ];
}

function isTidemark(path: string): boolean {
  try {
    const real = realpathSync(path);
    if (real === realpathSync(LAUNCHER_PATH)) {
      return true;
    }
    const text = readFileSync(real, "latin1").slice(0, LARGEST_LAUNCHER);
    return LAUNCHER_MARK.test(text);
  } catch {
    return false;
  }
}

/** Metadata folders (tidemark-1.2.dist-info) of an interpreter, found without starting it. */
function strangeDistributions(python: string): string[] {
  const libraries = resolve(dirname(python), "..", "lib");
  return namesIn(libraries)
    .filter((name) => /^python3\.\d+t?$/.test(name))
    .map((name) => join(libraries, name, "site-packages"))
    .flatMap((folder) =>
      namesIn(folder)
        .filter((name) => /^tidemark-[^-]+\.(?:dist|egg)-info$/.test(basename(name)))
        .map((name) => join(folder, name)),
    );
}
