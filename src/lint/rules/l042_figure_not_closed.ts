import type { FileFacts } from "../flow/file_facts.js";
import { code } from "./growing.js";
import { callsMatching } from "./made_again.js";
import type { Rule } from "./rule.js";

export const figureNotClosed: Rule = {
  id: "TM-L042",
  name: "figure-not-closed",
  severity: "error",
  finds: "A figure of `matplotlib.pyplot` created in a loop or a request handler and not closed.",
  why: "`pyplot` keeps every figure until `plt.close()`.",
  speed: "0.5 to 20 MiB for each figure.",
  before: `
import matplotlib.pyplot as plt

for name, series in data.items():
    figure, axes = plt.subplots()
    axes.plot(series)
    figure.savefig(f"{name}.png")
`,
  after: `
import matplotlib.pyplot as plt

for name, series in data.items():
    figure, axes = plt.subplots()
    axes.plot(series)
    figure.savefig(f"{name}.png")
    plt.close(figure)
`,
  ignore: "The figures are shown together, and the program ends.",
  proof: "`tidemark heap PID --to Figure` shows the path `Gcf > figs > OrderedDict`.",
  *check(file) {
    for (const call of callsMatching(FIGURES, file)) {
      const repeat = file.repeats.of(call.node);
      if (repeat !== null && !isClosed(file)) {
        yield {
          node: call.node,
          message: `${code(call.callee.text)} creates a figure ${repeat.text}, and ${code("pyplot")} keeps each one until ${code("plt.close()")}`,
        };
      }
    }
  },
};

const FIGURES = /^(?:matplotlib\.pyplot|plt|pylab|pyplot)\.(?:figure|subplots|subplot_mosaic)$/;

/** Somewhere in the file, figures are closed, cleared or shown. */
function isClosed(file: FileFacts): boolean {
  return file.module
    .callsOf("close", "clf", "show", "close_all", "switch_backend")
    .some(
      ({ callee, receiver }) =>
        /^(?:matplotlib\.pyplot|plt|pyplot|pylab)\./.test(
          file.names.resolve(callee) ?? callee.text,
        ) || /fig/.test(receiver?.text ?? ""),
    );
}
