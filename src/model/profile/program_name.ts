import { baseName } from "./frame_text.js";

/**
 * A program's name by its argv: "app" of `python app.py`, "pytest" of `python -m pytest`. `absolute` resolves the
 * script's path if the folder that it is relative to is known: for `python .`, the folder gives the name.
 */
export function programName(
  command: readonly string[],
  absolute: (word: string) => string = (word) => word,
): string {
  const program = baseName(command[0] ?? "program");
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
      return withoutSuffix(baseName(absolute(word)));
    }
  }
  return program;
}

function withoutSuffix(name: string): string {
  return name.replace(/\.pyw?$/, "");
}
