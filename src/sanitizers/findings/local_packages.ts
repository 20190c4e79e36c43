/**
 * Extensions that pip or uv installed from a folder (`pip install ./package`): they are the program's own code, although
 * they lie among the installed packages. `direct_url.json` and `RECORD` of the package record it (PEP 610, PEP 376).
 */
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

/** Absolute paths of the shared libraries of such packages in these folders of installed packages. */
export function localExtensions(folders: readonly string[]): Set<string> {
  return new Set(
    folders.flatMap((folder) =>
      packagesIn(folder)
        .filter((name) => isLocal(join(folder, name, "direct_url.json")))
        .flatMap((name) => librariesOf(join(folder, name, "RECORD")))
        .map((path) => join(folder, path)),
    ),
  );
}

function packagesIn(folder: string): string[] {
  return existsSync(folder)
    ? readdirSync(folder).filter((name) => name.endsWith(".dist-info"))
    : [];
}

function isLocal(path: string): boolean {
  try {
    return "dir_info" in (JSON.parse(readFileSync(path, "utf8")) as object);
  } catch {
    return false; // from an index, or not readable
  }
}

/** The first column of a RECORD is a path relative to the folder; with a comma in it, it is quoted. */
function librariesOf(record: string): string[] {
  try {
    return readFileSync(record, "utf8")
      .split("\n")
      .flatMap((line) => /^(?:"([^"]*\.so)"|([^",]*\.so)),/.exec(line)?.slice(1) ?? [])
      .filter((path) => path !== undefined);
  } catch {
    return [];
  }
}
