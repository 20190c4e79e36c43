/** Parameters of a request's query, checked one by one. */
import type { Millis, TimeMs } from "../../model/base/units.js";
import { badUsage, oneLine } from "../../model/errors/errors.js";
import { LONGEST_LABEL_VALUE } from "../../model/wire/identity.js";
import type { Window } from "../../store/index.js";

const LONGEST_WINDOW_MS: Millis = 732 * 86_400_000;
const DEFAULT_WINDOW_MS: Millis = 3_600_000;
const LATEST_MS: TimeMs = Date.UTC(2200, 0, 1);

export class Parameters {
  readonly #query: URLSearchParams;

  /** Throws TidemarkError for a parameter that is not `known`, or is given twice. */
  constructor(url: string, known: readonly string[]) {
    this.#query = new URL(url).searchParams;
    for (const name of new Set(this.#query.keys())) {
      if (!known.includes(name)) {
        throw badUsage(`unknown parameter ${oneLine(name, 60)}`, `known are: ${known.join(", ")}`);
      }
      if (this.#query.getAll(name).length > 1) {
        throw badUsage(`the parameter ${name} is given twice`, "");
      }
    }
  }

  text(name: string): string | undefined {
    const value = this.#query.get(name) ?? undefined;
    if (value !== undefined && value.length > LONGEST_LABEL_VALUE) {
      throw badUsage(`the parameter ${name} is longer than ${LONGEST_LABEL_VALUE} characters`, "");
    }
    return value;
  }

  needed(name: string): string {
    const value = this.text(name);
    if (value === undefined || value === "") {
      throw badUsage(`the parameter ${name} is missing`, "");
    }
    return value;
  }

  matching(name: string, form: RegExp, example: string): string {
    const value = this.needed(name);
    if (!form.test(value)) {
      throw badUsage(`the parameter ${name} is not ${example}`, "");
    }
    return value;
  }

  oneOf<Choice extends string>(
    name: string,
    choices: readonly Choice[],
    usual: NoInfer<Choice>,
  ): Choice {
    const value = this.text(name);
    const found = choices.find((choice) => choice === value);
    if (value !== undefined && found === undefined) {
      throw badUsage(`the parameter ${name} is not one of ${choices.join(", ")}`, "");
    }
    return found ?? usual;
  }

  whole(
    name: string,
    { least, most, usual }: { least: number; most: number; usual: number },
  ): number {
    const value = this.text(name);
    if (value === undefined) {
      return usual;
    }
    const number = /^\d{1,15}$/.test(value) ? Number(value) : Number.NaN;
    if (!(number >= least && number <= most)) {
      throw badUsage(`the parameter ${name} is not a whole number from ${least} to ${most}`, "");
    }
    return number;
  }

  /** `from` and `to` in ms since 1970; the last hour. */
  window(): Window {
    const endMs = this.whole("to", { least: 1, most: LATEST_MS, usual: Date.now() });
    const startMs = this.whole("from", {
      least: 0,
      most: LATEST_MS,
      usual: Math.max(0, endMs - DEFAULT_WINDOW_MS),
    });
    if (startMs >= endMs) {
      throw badUsage("the window ends before it begins", "from and to are ms since 1970");
    }
    if (endMs - startMs > LONGEST_WINDOW_MS) {
      throw badUsage("the window is longer than two years", "ask for a shorter one");
    }
    return { startMs, endMs };
  }
}
