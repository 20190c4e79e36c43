/** Checked values of a model's configuration: a hostile number causes a one-line error, not an endless loop. */
import { invalidModel } from "../../model/errors/plan_errors.js";

export type JsonObject = Readonly<Record<string, unknown>>;

const LARGEST = 1e9;
/** Characters: words are in messages. */
const LONGEST_WORD = 200;

export class ModelConfig {
  constructor(
    readonly values: JsonObject,
    /** Named in errors: the file. */
    readonly source: string,
  ) {}

  get family(): string {
    const type = this.values.model_type;
    return typeof type === "string" ? type.slice(0, 60) : "";
  }

  has(...names: string[]): boolean {
    return names.some((name) => this.values[name] !== undefined && this.values[name] !== null);
  }

  /** The first of the names that is there, as a whole number from 1. @throws TidemarkError TM-E085 */
  size(...names: string[]): number {
    const found = this.optionalSize(...names);
    if (found === undefined) {
      throw invalidModel(this.source, `${names[0]} is missing`);
    }
    return found;
  }

  /** undefined if none of the names exists. @throws TidemarkError TM-E085 if the value is not a whole number from 1 */
  optionalSize(...names: string[]): number | undefined {
    return this.#whole(names, 1);
  }

  /** A whole number from 0, or `otherwise`. */
  count(otherwise: number, ...names: string[]): number {
    return this.#whole(names, 0) ?? otherwise;
  }

  #whole(names: readonly string[], least: number): number | undefined {
    for (const name of names) {
      const value = this.values[name];
      if (value === undefined || value === null || value === false) {
        continue;
      }
      if (
        typeof value !== "number" ||
        !Number.isInteger(value) ||
        value < least ||
        value > LARGEST
      ) {
        throw invalidModel(
          this.source,
          `${name} is ${shown(value)}, not a whole number from ${least} to 1e9`,
        );
      }
      return value;
    }
    return undefined;
  }

  /** A number from 0, or `otherwise`. @throws TidemarkError TM-E085 for text and negative numbers */
  fraction(otherwise: number, ...names: string[]): number {
    for (const name of names) {
      const value = this.values[name];
      if (typeof value === "string" || (typeof value === "number" && !(value >= 0))) {
        throw invalidModel(this.source, `${name} is ${shown(value)}, not a number from 0`);
      }
      if (typeof value === "number" && value <= LARGEST) {
        return value;
      }
    }
    return otherwise;
  }

  /** @throws TidemarkError TM-E085 for text */
  flag(otherwise: boolean, ...names: string[]): boolean {
    for (const name of names) {
      const value = this.values[name];
      if (typeof value === "string") {
        throw invalidModel(this.source, `${name} is ${shown(value)}, not true or false`);
      }
      if (typeof value === "boolean") {
        return value;
      }
    }
    return otherwise;
  }

  text(...names: string[]): string {
    for (const name of names) {
      const value = this.values[name];
      if (typeof value === "string") {
        return value.slice(0, LONGEST_WORD);
      }
    }
    return "";
  }

  /** The first of `architectures`: the class that the weights were saved from; empty if it is absent. */
  get architecture(): string {
    return this.words("architectures")[0] ?? "";
  }

  /** A list of whole numbers; empty if it is absent. */
  sizes(name: string): number[] {
    const value = this.values[name];
    if (!Array.isArray(value)) {
      return [];
    }
    if (
      value.length > 1000 ||
      !value.every((each) => Number.isInteger(each) && each >= 0 && each <= LARGEST)
    ) {
      throw invalidModel(this.source, `${name} is not a list of whole numbers`);
    }
    return value as number[];
  }

  /** A list of words; empty if it is absent. @throws TidemarkError TM-E085 for a list of anything else */
  words(name: string): string[] {
    const value = this.values[name];
    if (!Array.isArray(value) || value.length > MOST_LAYERS) {
      return [];
    }
    if (!value.every((each) => typeof each === "string")) {
      throw invalidModel(this.source, `${name} is not a list of words`);
    }
    return value.map((each) => each.slice(0, LONGEST_WORD));
  }

  part(name: string): ModelConfig | null {
    const value = this.values[name];
    return typeof value === "object" && value !== null && !Array.isArray(value)
      ? new ModelConfig(value as JsonObject, `${this.source} (${name})`)
      : null;
  }

  /** With values for what is absent. */
  filledFrom(defaults: JsonObject): ModelConfig {
    return new ModelConfig({ ...defaults, ...this.values }, this.source);
  }

  named(family: string): ModelConfig {
    return new ModelConfig({ ...this.values, model_type: family }, this.source);
  }

  with(changes: JsonObject): ModelConfig {
    return new ModelConfig({ ...this.values, ...changes }, this.source);
  }

  without(name: string): ModelConfig {
    return this.with({ [name]: null });
  }

  /** The number of layers, which bounds all work. */
  layers(...names: string[]): number {
    const layers = this.size(...names);
    if (layers > MOST_LAYERS) {
      throw invalidModel(this.source, `${layers} layers`);
    }
    return layers;
  }
}

const MOST_LAYERS = 1000;

function shown(value: unknown): string {
  return typeof value === "object" ? "no number" : (JSON.stringify(value) ?? "no number");
}
