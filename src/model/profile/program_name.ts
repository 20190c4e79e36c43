import { baseName } from "./frame_text.js";

/** What an interpreter runs: a script, a module, or code that no file contains. */
type Source =
  | { readonly kind: "script" | "module"; readonly name: string }
  | { readonly kind: "code" | "nothing" };

/** joblib's own copy of loky, or loky itself. */
const WORKER_MODULE = /(?:^|\.)loky\.backend\./;

/**
 * A program's name by its argv: "app" of `python app.py`, "pytest" of `python -m pytest`. `absolute` resolves the
 * script's path if the folder that it is relative to is known: for `python .`, the folder gives the name.
 */
export function programName(
  command: readonly string[],
  absolute: (word: string) => string = (word) => word,
): string {
  const program = baseName(command[0] ?? "program");
  const source = sourceOf(command);
  switch (source?.kind) {
    case undefined:
      return withoutSuffix(program);
    case "script":
      return withoutSuffix(baseName(absolute(source.name)));
    case "module":
      return source.name;
    default:
      return program;
  }
}

/**
 * The program's name in a title that a process gave itself: "gunicorn" of "gunicorn: master [shop:app]", "celeryd" of
 * "[celeryd: celery@host:MainProcess]", "ray" of "ray::IDLE", "app" of "python app.py worker".
 */
export function nameInTitle(title: string): string {
  const words = title
    .replace(/^\[/, "")
    .trim()
    .split(/[\s\]]+/);
  const [first = ""] = words;
  return programName([first.split(":", 1)[0] || first || "program", ...words.slice(1)]);
}

/**
 * Whether it is Python that runs code of the program that started it: `python -c CODE`, as multiprocessing (spawn,
 * forkserver, its resource tracker), concurrent.futures and execnet start their workers, or a worker of joblib.
 */
export function runsCodeOfParent(command: readonly string[]): boolean {
  const source = sourceOf(command);
  return source?.kind === "code" || (source?.kind === "module" && WORKER_MODULE.test(source.name));
}

/** null for another program than Python. */
function sourceOf(command: readonly string[]): Source | null {
  if (!/^python[\d.]*t?$/.test(baseName(command[0] ?? ""))) {
    return null;
  }
  for (let i = 1; i < command.length; i++) {
    const word = command[i] as string;
    if (word === "-m") {
      const name = command[i + 1];
      return name === undefined ? { kind: "nothing" } : { kind: "module", name };
    }
    if (word === "-c" || word === "-") {
      return { kind: word === "-c" ? "code" : "nothing" };
    }
    if (word === "-W" || word === "-X") {
      i += 1;
    } else if (!word.startsWith("-")) {
      return { kind: "script", name: word };
    }
  }
  return { kind: "nothing" };
}

function withoutSuffix(name: string): string {
  return name.replace(/\.pyw?$/, "");
}
