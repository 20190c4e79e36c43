/** The settings that `tidemark allocators` compares: what each adds to a program's environment. */
import { existsSync, readdirSync, realpathSync } from "node:fs";
import { join } from "node:path";
import { HOOKS_FOLDER } from "../linux/installation.js";
import type { AllocatorName } from "../model/documents/allocators_document.js";

export interface Setting {
  readonly name: AllocatorName;
  readonly title: string;
  /** Variables of the program's environment. */
  readonly environment: Readonly<Record<string, string>>;
  /** A folder for the front of PYTHONPATH. */
  readonly pythonPath?: string;
  /** Name of the shared library that is preloaded, without what follows ".so". */
  readonly library?: string;
  /** Command that installs the library on Debian and Ubuntu. */
  readonly install?: string;
  /** The oldest CPython, as 100 * major + minor. */
  readonly oldestPython?: number;
}

export const SETTINGS: readonly Setting[] = [
  { name: "glibc", title: "glibc (default)", environment: {} },
  {
    name: "arenas",
    title: "glibc, at most 2 arenas",
    environment: { MALLOC_ARENA_MAX: "2" },
  },
  {
    // glibc raises the threshold with each large block that is freed; setting it pins it (mallopt(3)).
    name: "mmap",
    title: "glibc, mmap from 128 KiB on",
    environment: { MALLOC_MMAP_THRESHOLD_: "131072" },
  },
  {
    name: "trim",
    title: "glibc, trimmed every second",
    environment: {},
    pythonPath: join(HOOKS_FOLDER, "trim"),
  },
  {
    name: "pymimalloc",
    title: "Python's own mimalloc",
    environment: { PYTHONMALLOC: "mimalloc" },
    oldestPython: 313,
  },
  {
    name: "jemalloc",
    title: "jemalloc",
    environment: {},
    library: "libjemalloc",
    install: "sudo apt install libjemalloc2",
  },
  {
    name: "mimalloc",
    title: "mimalloc",
    environment: {},
    library: "libmimalloc",
    install: "sudo apt install libmimalloc2.0",
  },
  {
    name: "tcmalloc",
    title: "tcmalloc",
    environment: {},
    library: "libtcmalloc_minimal",
    install: "sudo apt install libtcmalloc-minimal4",
  },
];

/** Folders in which the loader and conda keep libraries; those of LD_LIBRARY_PATH come first. */
function libraryFolders(environment: NodeJS.ProcessEnv): string[] {
  const given = (environment.LD_LIBRARY_PATH ?? "").split(":").filter((folder) => folder !== "");
  const conda = environment.CONDA_PREFIX ? [join(environment.CONDA_PREFIX, "lib")] : [];
  return [
    ...given,
    ...conda,
    "/usr/local/lib",
    "/usr/lib/x86_64-linux-gnu",
    "/lib/x86_64-linux-gnu",
    "/usr/lib64",
    "/usr/lib",
  ];
}

/** Path, with links resolved, of the newest version of a library; null if it is not installed. */
export function findLibrary(
  name: string,
  environment: NodeJS.ProcessEnv = process.env,
): string | null {
  const pattern = new RegExp(`^${name}\\.so(?:\\.[\\d.]+)?$`);
  for (const folder of libraryFolders(environment)) {
    const names = existsSync(folder)
      ? readdirSync(folder).filter((file) => pattern.test(file))
      : [];
    const [found] = names.sort((a, b) => b.localeCompare(a, "en", { numeric: true }));
    // A path with a space or a colon cannot be preloaded: ld.so splits LD_PRELOAD there.
    if (found !== undefined && !/[\s:]/.test(folder)) {
      return realpathSync(join(folder, found));
    }
  }
  return null;
}
