/**
 * Memcheck's XML, protocols 4 to 6 (docs/internals/xml-output*.txt of Valgrind):
 *
 *     <valgrindoutput> <protocolversion>4</protocolversion> <pid>..</pid>
 *       <error> <unique/> <tid/> <kind/> <what/> or <xwhat><text/> <leakedbytes/> <leakedblocks/></xwhat>
 *               <stack> <frame> <ip/> <obj/> <fn/> <dir/> <file/> <line/> </frame> ... </stack>
 *               <auxwhat/> <stack/> ... </error>
 *       <errorcounts> <pair> <count/> <unique/> </pair> </errorcounts>
 *       <suppcounts> <pair> <count/> <name/> </pair> </suppcounts>
 *       <fatal_signal> <signame/> <event/> <stack/> </fatal_signal>
 *
 * Protocol 5 adds errors about descriptors, 6 further kinds; both keep the elements above. A process that is killed
 * leaves a truncated file.
 */
import { SaxesParser } from "saxes";
import { toolRunFailed } from "../../model/errors/tool_errors.js";
import { type NativeFrame, type Report, type ReportFile, withoutRaise } from "./report.js";

const OLDEST_PROTOCOL = 4;
const NEWEST_PROTOCOL = 6;
/** The format nests six levels deep; a file with more levels is hostile. */
const MOST_DEPTH = 32;
/** Longer text is cut. */
const MOST_TEXT = 16_384;
const MOST_FRAMES = 500;
/** Distinct reports that are kept. */
const MOST_REPORTS = 100_000;
// biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what it replaces
const FORBIDDEN = /[\u0000-\u0008\u000b\u000c\u000e-\u001f]/g;
/** Frees Python's objects (agent/calls/free_lists.c) for the interpreter, whose frames are below. */
const OWN_OBJECT = /\/libtidemark-calls\.so$/;
const FAULTS_WITH_ADDRESS = /SIG(?:SEGV|BUS)/;
/** Ends by other signals (SIGINT, SIGTERM) are not errors. */
const FAULTS = /SIG(?:SEGV|BUS|ILL|FPE|ABRT|TRAP|SYS)/;

interface Stack {
  /** The meaning of the text before the stack. */
  readonly about: string;
  readonly frames: NativeFrame[];
}

interface OpenReport {
  unique: string;
  thread: number;
  kind: string;
  what: string;
  aux: string;
  bytes: number;
  blocks: number;
  readonly stacks: Stack[];
  readonly offset: number;
}

/** Reads the pieces of a file, each byte as one character. Throws TM-E091 for a protocol that it does not know. */
export class ValgrindReader {
  readonly #parser = new SaxesParser({ position: true });
  readonly #path: string[] = [];
  readonly #reports: Report[] = [];
  readonly #byUnique = new Map<string, number>();
  readonly #counts: number[] = [];
  #text = "";
  #pid = 0;
  #report: OpenReport | null = null;
  #frame: Record<string, string> | null = null;
  #pair: Record<string, string> = {};
  readonly #suppressed = new Map<string, number>();
  #damage: string | null = null;
  #protocol: number | null = null;
  #leftOut = 0;

  constructor() {
    const parser = this.#parser;
    parser.on("error", (error) => this.#fail(error.message.replace(/^\d+:\d+: /, "")));
    parser.on("doctype", () => this.#fail("it has a document type, which Valgrind never writes"));
    parser.on("opentag", ({ name }) => this.#open(name));
    parser.on("text", (text) => {
      this.#text = (this.#text + text).slice(0, MOST_TEXT);
    });
    parser.on("closetag", ({ name }) => this.#close(name));
  }

  write(piece: Buffer): void {
    if (this.#damage === null) {
      // Valgrind copies control characters of file names, which XML forbids.
      this.#parser.write(piece.toString("latin1").replace(FORBIDDEN, "?"));
    }
  }

  end(): ReportFile {
    if (this.#damage === null) {
      this.#parser.close();
    }
    if (this.#damage === null && this.#protocol === null) {
      this.#damage = "it is not Valgrind's XML";
    }
    if (this.#damage === null && this.#leftOut > 0) {
      this.#damage = `${this.#leftOut} reports beyond the first ${MOST_REPORTS} were left out`;
    }
    this.#countOnce();
    return {
      pid: this.#pid,
      reports: this.#reports,
      counts: this.#counts,
      suppressed: this.#suppressed,
      damage: this.#damage,
    };
  }

  /**
   * faulthandler lets the faulting instruction run again, so its error is reported twice, and the stack of the crash may
   * be incomplete.
   */
  #countOnce(): void {
    const ended = this.#reports.findIndex(({ kind }) => kind === "FatalSignal");
    const crash = this.#reports[ended];
    const at = this.#reports.findIndex(
      ({ kind, stack }) =>
        kind !== "FatalSignal" && isSameAddress(stack[0]?.address, crash?.stack[0]?.address),
    );
    const [error, count = 0] = [this.#reports[at], this.#counts[at]];
    if (count > 1) {
      this.#counts[at] = count - 1;
    }
    if (crash !== undefined && error !== undefined && error.stack.length > crash.stack.length) {
      this.#reports[ended] = { ...crash, stack: error.stack };
    }
  }

  #fail(reason: string): void {
    this.#damage ??= /unclosed tag|document must contain a root/.test(reason)
      ? "it ends in the middle, because the process was killed or crashed, or the disk is full"
      : reason;
  }

  #open(name: string): void {
    if (this.#damage !== null) {
      return;
    }
    this.#path.push(name);
    this.#text = "";
    if (this.#path.length > MOST_DEPTH) {
      this.#fail("its elements are nested too deep");
    } else if (name === "error" || name === "fatal_signal") {
      this.#report = {
        unique: "",
        thread: 0,
        kind: name === "error" ? "" : "FatalSignal",
        what: "",
        aux: "",
        bytes: 0,
        blocks: 0,
        stacks: [],
        offset: this.#parser.position,
      };
    } else if (name === "stack" && this.#report !== null) {
      this.#report.stacks.push({ about: this.#report.aux, frames: [] });
    } else if (name === "frame") {
      this.#frame = {};
    } else if (name === "pair") {
      this.#pair = {};
    }
  }

  #close(name: string): void {
    if (this.#damage !== null) {
      return;
    }
    this.#path.pop();
    const text = Buffer.from(this.#text.trim(), "latin1").toString("utf8");
    this.#text = "";
    const parent = this.#path.at(-1);
    if (name === "protocolversion") {
      this.#setProtocol(text);
    } else if (name === "pid" && parent === "valgrindoutput") {
      this.#pid = Number(text) || 0;
    } else if (parent === "frame" && this.#frame !== null) {
      this.#frame[name] = text;
    } else if (name === "frame") {
      this.#closeFrame();
    } else if (parent === "pair") {
      this.#pair[name] = text;
    } else if (name === "pair" && parent === "errorcounts") {
      this.#setCount();
    } else if (name === "pair" && parent === "suppcounts") {
      this.#suppressed.set(this.#pair.name ?? "", Number(this.#pair.count) || 0);
    } else if (this.#report !== null) {
      this.#closeInReport(this.#report, name, text);
    }
  }

  #setProtocol(text: string): void {
    const protocol = Number(text);
    if (!(protocol >= OLDEST_PROTOCOL && protocol <= NEWEST_PROTOCOL)) {
      throw toolRunFailed(
        `Valgrind wrote XML of protocol ${text === "" ? "?" : text.slice(0, 20)}, this Tidemark reads ${OLDEST_PROTOCOL} to ${NEWEST_PROTOCOL}`,
        "this Valgrind is newer or much older than the versions that Tidemark knows",
        "update Tidemark, or use Valgrind 3.5 to 3.25",
      );
    }
    this.#protocol = protocol;
  }

  #closeFrame(): void {
    const { ip = "", fn = "", obj = "", dir, file, line = "" } = this.#frame ?? {};
    const frames = this.#report?.stacks.at(-1)?.frames;
    this.#frame = null;
    if (frames !== undefined && frames.length < MOST_FRAMES && !OWN_OBJECT.test(obj)) {
      const path = file === undefined ? "" : dir === undefined ? file : `${dir}/${file}`;
      frames.push({
        address: ip,
        function: fn,
        file: path,
        line: Number(line) || 0,
        object: obj,
      });
    }
  }

  #setCount(): void {
    const at = this.#byUnique.get(this.#pair.unique ?? "");
    const count = Number(this.#pair.count);
    if (at !== undefined && Number.isSafeInteger(count) && count > 0) {
      this.#counts[at] = count;
    }
  }

  #closeInReport(report: OpenReport, name: string, text: string): void {
    if (name === "error" || name === "fatal_signal") {
      this.#report = null;
      if (name === "error" || FAULTS.test(report.what)) {
        this.#take(report);
      }
    } else if (name === "unique" || name === "kind") {
      report[name] = text;
    } else if (name === "tid") {
      report.thread = Number(text) || 0;
    } else if (name === "what" || name === "text") {
      report.what ||= text;
    } else if (name === "auxwhat") {
      report.aux = text;
      report.what ||= text;
    } else if (name === "signame") {
      report.what = `the program was ended by ${text}`;
    } else if (name === "event") {
      report.what += `: ${text}`;
    } else if (name === "siaddr" && FAULTS_WITH_ADDRESS.test(report.what)) {
      report.what += ` at address ${text.toLowerCase().replace(/^0x0+(?=.)/, "0x")}`;
    } else if (name === "leakedbytes") {
      report.bytes = Number(text) || 0;
    } else if (name === "leakedblocks") {
      report.blocks = Number(text) || 0;
    }
  }

  #take(report: OpenReport): void {
    if (this.#reports.length >= MOST_REPORTS) {
      this.#leftOut += 1;
      return;
    }
    const [stack, ...others] = report.stacks;
    const about = (words: RegExp) => others.find((other) => words.test(other.about))?.frames ?? [];
    const freed = about(/free'd/);
    this.#byUnique.set(report.unique, this.#reports.length);
    this.#counts.push(1);
    this.#reports.push({
      isLeak: report.kind.startsWith("Leak_"),
      kind: report.kind,
      message: [report.what, blockWords(report)].filter((words) => words !== "").join("; "),
      pid: this.#pid,
      thread: report.thread,
      stack:
        report.kind === "FatalSignal" ? withoutRaise(stack?.frames ?? []) : (stack?.frames ?? []),
      freed,
      // For a freed block, the stack of the free comes first, then that of the allocation.
      allocated:
        freed.length > 0 ? (others[1]?.frames ?? []) : about(/alloc'd|created by|stack of thread/),
      bytes: report.bytes,
      blocks: report.blocks,
      offset: report.offset,
    });
  }
}

/** In a stack below a signal handler, the address of the instruction that faulted is one less. */
function isSameAddress(address: string | undefined, ofCrash: string | undefined): boolean {
  const ahead = Number(address) - Number(ofCrash);
  return ahead === 0 || ahead === 1;
}

/**
 * Where an address lies: "Address 0x5 is 0 bytes after a block of size 16 alloc'd", "... is on thread 1's stack",
 * "... is not stack'd, malloc'd or (recently) free'd".
 */
function blockWords({ stacks, aux }: OpenReport): string {
  const words = stacks.find(({ about }) => / is \d+ bytes /.test(about))?.about;
  if (words !== undefined) {
    return words.replace(/^Address 0x[0-9a-f]+ is/i, "the address is");
  }
  const [, address, place = ""] = /^Address (0x[0-9a-f]+) is (.*)$/i.exec(aux) ?? [];
  if (address === undefined) {
    return "";
  }
  return `the address ${address.toLowerCase()} is ${/^not stack'd/.test(place) ? "in no block" : place}`;
}
