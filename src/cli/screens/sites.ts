/** Readable names of sites and frames. */

import { homedir } from "node:os";
import { basename, relative } from "node:path";
import type { SiteGroup } from "../../inspect/index.js";
import type { FrameJson } from "../../model/documents/documents.js";
import { readableFile } from "../../model/profile/frame_text.js";

/** "app.py:41", "numpy/lib/npyio.py:123", "libtorch_cpu.so": as short as possible while still clear. */
export function placeOf(frame: FrameJson): string {
  if (frame.file === "") {
    return "";
  }
  const file =
    frame.kind === "native" ? objectName(frame.file) : shortPath(readableFile(frame.file));
  return frame.line > 0 ? `${file}:${frame.line}` : file;
}

/** "_multiarray_umath.so": without the tag of the interpreter that it was built for. */
function objectName(path: string): string {
  return basename(path).replace(/\.(?:cpython-\w+(?:-\w+)*|abi3)\.so$/, ".so");
}

/** Readable name: native frames without a symbol show only the shared object, Python frames may have only a line. */
export function functionOf(frame: FrameJson): string {
  return frame.function === "" && frame.kind === "native" ? "(no symbol)" : frame.function;
}

/** A path inside a package directory, the current directory or the home directory is shown relative to it. */
export function shortPath(path: string): string {
  const installed =
    /[/\\](?:site|dist)-packages[/\\](.+)$/.exec(path) ??
    /[/\\]lib(?:64)?[/\\]python\d(?:\.\d+)?t?[/\\](.+)$/.exec(path);
  if (installed?.[1] !== undefined) {
    return installed[1];
  }
  if (!path.startsWith("/")) {
    return /^<frozen (.+)>$/.exec(path)?.[1] ?? path;
  }
  const here = relative(process.cwd(), path);
  if (here !== "" && !here.startsWith("..")) {
    return here;
  }
  const home = homedir();
  return home !== "/" && path.startsWith(`${home}/`) ? `~${path.slice(home.length)}` : path;
}

/** What allocated, as text. */
export function originOf(domain: SiteGroup["domain"]): string {
  return domain === "python" ? "Python" : domain;
}

/** The text that `--filter` searches: every name in the row. */
export function groupText(group: SiteGroup): string {
  return [group.headline, group.leaf ?? group.headline]
    .map((frame) => `${frame.function} ${frame.file}:${frame.line}`)
    .join(" ");
}
