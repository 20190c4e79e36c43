import { code } from "./growing.js";
import { callsMatching } from "./made_again.js";
import type { Rule } from "./rule.js";

export const fileNotClosed: Rule = {
  id: "TM-L025",
  name: "file-not-closed",
  severity: "warning",
  finds: "A function opens a file, and nothing closes it: there is no `with` and no `close()`.",
  why: "The file stays open, and its buffer stays in memory, until its last reference is gone. In a cycle, or if an exception is kept, that may take long.",
  speed: "One descriptor and a buffer of 8 KiB or more for each call.",
  before: `
def load(path):
    f = open(path)
    return f.read()
`,
  after: `
def load(path):
    with open(path) as f:
        return f.read()
`,
  ignore: "The file should stay open as long as the program runs.",
  proof: "`tidemark diagnose PID` reports the kind `handle-leak`, with the line that opens.",
  *check(file) {
    for (const call of callsMatching(OPENING, file)) {
      if (call.scope.functionAround === null && file.repeats.loopAround(call.node) === null) {
        continue; // a script's own files live as long as it does
      }
      if (file.resources.fateOf(call.node) === "open") {
        yield {
          node: call.node,
          message: `nothing closes what ${code(call.callee.text)} opens: use ${code("with")}`,
        };
      }
    }
  },
};

const OPENING =
  /^(?:open|io\.open|codecs\.open|gzip\.open|bz2\.open|lzma\.open|gzip\.GzipFile|bz2\.BZ2File|lzma\.LZMAFile|tarfile\.open|zipfile\.ZipFile|os\.fdopen|builtins\.open|mmap\.mmap|shelve\.open|h5py\.File|rasterio\.open|netCDF4\.Dataset|aiofiles\.open|tempfile\.TemporaryFile|tempfile\.NamedTemporaryFile|cv2\.VideoCapture|av\.open|fitz\.open|wave\.open)$/;
