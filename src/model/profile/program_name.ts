import { baseName } from "./frame_text.js";
import { pythonSource } from "./python_command.js";

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
  const source = pythonSource(command);
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
  const source = pythonSource(command);
  return source?.kind === "code" || (source?.kind === "module" && WORKER_MODULE.test(source.name));
}

function withoutSuffix(name: string): string {
  return name.replace(/\.pyw?$/, "");
}
