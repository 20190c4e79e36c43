/**
 * Stacks of two recordings in terms that both know, so that one line is not listed as two. Tools differ in:
 *
 *     names    Store.fill or fill, and CPython before 3.11 has only the second
 *     files    relative to where the program was started, or absolute
 *     native   frames of C and C++ code below those of Python, or none
 *     root     a tool that starts the program has frames of its own and of runpy above it
 *     depth    whole stacks, or one line for each site
 */
import type { FrameJson, SummarySiteJson } from "../../../model/documents/documents.js";
import { isOwn, isOwnPath, ownFrame } from "../../../model/documents/own_code.js";

type Sites = readonly SummarySiteJson[];

/** The sites of both sides with stacks of the same terms; sites that become equal are not yet merged. @internal */
export function inCommonTerms(a: Sites, b: Sites): [SummarySiteJson[], SummarySiteJson[]] {
  const native = [a, b].map((side) => side.some(hasNativeBelowPython));
  const names = new CommonNames(a, b);
  const side = (sites: Sites, other: Sites): SummarySiteJson[] => {
    const toLine = isByLine(other) && !isByLine(sites) ? lineOf(other) : (stack: Stack) => stack;
    return sites.map((site) => {
      const known = native[0] === native[1] ? site.stack : withoutNative(site.stack);
      return { ...site, stack: toLine(withoutLauncher(known)).map((frame) => names.of(frame)) };
    });
  };
  return [side(a, b), side(b, a)];
}

type Stack = FrameJson[];

function isPython({ kind }: FrameJson): boolean {
  return kind === "python";
}

function hasNativeBelowPython({ stack }: SummarySiteJson): boolean {
  return stack.some(isPython) && stack.some(({ kind }) => kind === "native");
}

/** A stack without Python keeps its native frames: they are all that is known of it. */
function withoutNative(stack: Stack): Stack {
  return stack.some(isPython) ? stack.filter(({ kind }) => kind !== "native") : stack;
}

const RUNPY = /^<frozen runpy>$|[/\\]runpy\.py$/;

/** Without the frames from runpy to the root, unless the program itself calls it. */
function withoutLauncher(stack: Stack): Stack {
  const at = stack.findIndex(({ file }) => RUNPY.test(file));
  const isLauncher =
    at > 0 && !stack.slice(at).some((frame) => !RUNPY.test(frame.file) && isOwn(frame));
  return isLauncher ? stack.slice(0, at) : stack;
}

/** Whether the sites are lines, as those of scalene and of a tracemalloc that keeps one frame. */
function isByLine(sites: Sites): boolean {
  return sites.length > 0 && sites.every(({ stack }) => stack.length === 1) && sites.some(isPlaced);
}

function isPlaced({ stack: [frame] }: SummarySiteJson): boolean {
  return frame !== undefined && isPython(frame) && frame.line > 0;
}

/** Reduces a stack to the frame that a tool with these lines counts: the innermost, or the program's own. */
function lineOf(lines: Sites): (stack: Stack) => Stack {
  const countsLeaves = lines.some(
    ({ stack: [frame] }) => frame !== undefined && !isOwnPath(frame.file, frame.function),
  );
  return (stack) => {
    const line = countsLeaves ? stack.find(isPython) : ownFrame(stack);
    return [line ?? stack[0]].filter((frame) => frame !== undefined);
  };
}

/** One name of the function and of the file for each line of Python code. */
class CommonNames {
  /** Absolute paths, by their last component. */
  readonly #paths = new Map<string, Set<string>>();
  readonly #frames = new Map<FrameJson, FrameJson>();
  /** The longest name of a line's function: "Store.fill". */
  readonly #functions = new Map<string, string>();

  constructor(a: Sites, b: Sites) {
    const frames = new Set([...a, ...b].flatMap(({ stack }) => stack.filter(isPython)));
    for (const { file } of frames) {
      if (file.startsWith("/")) {
        const name = lastPart(file, "/");
        this.#paths.set(name, (this.#paths.get(name) ?? new Set()).add(file));
      }
    }
    for (const frame of frames) {
      const key = this.#keyOf(frame);
      const known = this.#functions.get(key) ?? "";
      if (frame.function.length > known.length) {
        this.#functions.set(key, frame.function);
      }
    }
  }

  of(frame: FrameJson): FrameJson {
    if (!isPython(frame)) {
      return withoutOffset(frame);
    }
    let named = this.#frames.get(frame);
    if (named === undefined) {
      const name = this.#functions.get(this.#keyOf(frame)) ?? frame.function;
      named = { ...frame, function: name, file: this.#fileOf(frame) };
      this.#frames.set(frame, named);
    }
    return named;
  }

  #keyOf(frame: FrameJson): string {
    return JSON.stringify([this.#fileOf(frame), frame.line, lastPart(frame.function, ".")]);
  }

  /** The only absolute path that ends in a relative one; the file as it is if none or several do. */
  #fileOf({ file }: FrameJson): string {
    if (file.startsWith("/") || file.startsWith("<")) {
      return file;
    }
    const relative = file.replace(/^(?:\.\/)+/, "");
    const found = [...(this.#paths.get(lastPart(relative, "/")) ?? [])].filter((path) =>
      path.endsWith(`/${relative}`),
    );
    return found.length === 1 ? (found[0] ?? file) : file;
  }
}

/** "libc.so.6+0x389b1" is what Tidemark's exports show in the place of a missing symbol. */
function withoutOffset(frame: FrameJson): FrameJson {
  const offset = frame.function.lastIndexOf("+0x");
  const isOffset = offset > 0 && lastPart(frame.file, "/") === frame.function.slice(0, offset);
  return isOffset ? { ...frame, function: "" } : frame;
}

function lastPart(text: string, separator: string): string {
  return text.slice(text.lastIndexOf(separator) + 1);
}
