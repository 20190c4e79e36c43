/** Words of a command line: the program's name, and quoting for a shell. */
import { basename, resolve } from "node:path";

/** The program's name for use in file names: "app" for `python app.py`, "pytest" for `python -m pytest`. */
export function programName(command: readonly string[]): string {
  const program = basename(command[0] ?? "program");
  if (!/^python[\d.]*t?$/.test(program)) {
    return withoutSuffix(program);
  }
  for (let i = 1; i < command.length; i++) {
    const word = command[i] as string;
    if (word === "-m") {
      return command[i + 1] ?? program;
    }
    if (word === "-c" || word === "-") {
      return program;
    }
    if (word === "-W" || word === "-X") {
      i += 1;
    } else if (!word.startsWith("-")) {
      return withoutSuffix(basename(resolve(word)));
    }
  }
  return program;
}

function withoutSuffix(name: string): string {
  return name.replace(/\.pyw?$/, "");
}

/** Quotes a word for a shell. */
export function shellWord(word: string): string {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`;
}
