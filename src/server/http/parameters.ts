/**
 * Parameters of a request's query. A route declares them once: requests are checked by the declaration, and the OpenAPI
 * document (openapi.ts) shows it.
 */
import type { Millis, TimeMs } from "../../model/base/units.js";
import { badUsage, oneLine } from "../../model/errors/errors.js";
import { LONGEST_LABEL_VALUE } from "../../model/wire/identity.js";
import type { SampleLabel, Window } from "../../store/index.js";

const LONGEST_WINDOW_MS: Millis = 732 * 86_400_000;
const DEFAULT_WINDOW_MS: Millis = 3_600_000;
const LATEST_MS: TimeMs = Date.UTC(2200, 0, 1);

export interface Parameter<Value> {
  /** The description for people. */
  readonly says: string;
  /** JSON Schema. */
  readonly schema: object;
  readonly isRequired: boolean;
  /** Throws TidemarkError for a value that is not allowed, or missing. */
  readonly read: (value: string | undefined, name: string) => Value;
}

export type Parameters = Readonly<Record<string, Parameter<unknown>>>;
export type ValuesOf<Declared extends Parameters> = {
  readonly [Name in keyof Declared]: Declared[Name] extends Parameter<infer Value> ? Value : never;
};

/** The values of a request. Throws TidemarkError for a parameter that is unknown, given twice, missing or invalid. */
export function valuesIn<Declared extends Parameters>(
  url: string,
  declared: Declared,
): ValuesOf<Declared> {
  const query = new URL(url).searchParams;
  for (const name of new Set(query.keys())) {
    if (!Object.hasOwn(declared, name)) {
      const known = Object.keys(declared).join(", ");
      throw badUsage(`unknown parameter ${oneLine(name, 60)}`, `known are: ${known}`);
    }
    if (query.getAll(name).length > 1) {
      throw badUsage(`the parameter ${name} is given twice`, "");
    }
  }
  return Object.fromEntries(
    Object.entries(declared).map(([name, { read }]) => [
      name,
      read(query.get(name) ?? undefined, name),
    ]),
  ) as ValuesOf<Declared>;
}

/** Text that may be missing. */
export function text(says: string, longest = LONGEST_LABEL_VALUE): Parameter<string | undefined> {
  return {
    says,
    schema: { type: "string", maxLength: longest },
    isRequired: false,
    read(value, name) {
      if (value !== undefined && value.length > longest) {
        throw badUsage(`the parameter ${name} is longer than ${longest} characters`, "");
      }
      return value;
    },
  };
}

export function needed(says: string, longest = LONGEST_LABEL_VALUE): Parameter<string> {
  const optional = text(says, longest);
  return {
    ...optional,
    isRequired: true,
    read: (value, name) => optional.read(value, name) || missing(name),
  };
}

/** `KEY=VALUE`, of a label that programs set. */
export function condition(says: string): Parameter<SampleLabel | undefined> {
  const whole = text(says, 2 * LONGEST_LABEL_VALUE);
  return {
    ...whole,
    schema: { ...whole.schema, pattern: "^[^=]+=" },
    read(value, name) {
      const given = whole.read(value, name);
      const at = given?.indexOf("=") ?? 0;
      if (given !== undefined && at < 1) {
        throw badUsage(
          `the parameter ${name} is not KEY=VALUE`,
          "for example, endpoint=/chat; `KEY=` selects what has no such label",
        );
      }
      return given === undefined
        ? undefined
        : { name: given.slice(0, at), value: given.slice(at + 1) };
    },
  };
}

/** Text of a form. `example`: "the name of a stream, 32 hex digits". */
export function matching(says: string, form: RegExp, example: string): Parameter<string> {
  return {
    says,
    schema: { type: "string", pattern: form.source },
    isRequired: true,
    read(value = "", name) {
      if (!form.test(value || missing(name))) {
        throw badUsage(`the parameter ${name} is not ${example}`, "");
      }
      return value;
    },
  };
}

export function oneOf<Choice extends string>(
  says: string,
  choices: readonly Choice[],
  usual: NoInfer<Choice>,
): Parameter<Choice> {
  return {
    says,
    schema: { type: "string", enum: choices, default: usual },
    isRequired: false,
    read(value, name) {
      const found = choices.find((choice) => choice === value);
      if (value !== undefined && found === undefined) {
        throw badUsage(`the parameter ${name} is not one of ${choices.join(", ")}`, "");
      }
      return found ?? usual;
    },
  };
}

/** A whole number. `usual`: the default. */
export function whole<Usual extends number | undefined>(
  says: string,
  { least, most, usual }: { least: number; most: number; usual: Usual },
): Parameter<number | Usual> {
  return {
    says,
    schema: {
      type: "integer",
      minimum: least,
      maximum: most,
      ...(usual === undefined ? {} : { default: usual }),
    },
    isRequired: false,
    read(value, name) {
      if (value === undefined) {
        return usual;
      }
      const number = /^\d{1,16}$/.test(value) ? Number(value) : Number.NaN;
      if (!(number >= least && number <= most)) {
        throw badUsage(`the parameter ${name} is not a whole number from ${least} to ${most}`, "");
      }
      return number;
    },
  };
}

export function neededWhole(
  says: string,
  limits: { least: number; most: number },
): Parameter<number> {
  const optional = whole(says, { ...limits, usual: undefined });
  return {
    ...optional,
    isRequired: true,
    read: (value, name) => optional.read(value, name) ?? missing(name),
  };
}

function missing(name: string): never {
  throw badUsage(`the parameter ${name} is missing`, "");
}

/** A moment of a window; `describes`: its description for people. */
export const moment = (describes: string) =>
  whole(describes, { least: 0, most: LATEST_MS, usual: undefined });

/** `from` and `to`, for {@link windowOf}. */
export const WINDOW = {
  from: moment("Start of the window in ms since 1970; an hour before its end if missing."),
  to: moment("End of the window in ms since 1970; now if missing."),
};

/** Throws TidemarkError for a window that is empty or too long. */
export function windowOf({ from, to }: ValuesOf<typeof WINDOW>): Window {
  const endMs = to ?? Date.now();
  const startMs = from ?? Math.max(0, endMs - DEFAULT_WINDOW_MS);
  if (startMs >= endMs) {
    throw badUsage("the window ends before it begins", "from and to are ms since 1970");
  }
  if (endMs - startMs > LONGEST_WINDOW_MS) {
    throw badUsage("the window is longer than two years", "ask for a shorter one");
  }
  return { startMs, endMs };
}
