/** Whether the container in a slot only grows. */
import { type Container, containerOf } from "../scopes/containers.js";
import type { Names } from "../scopes/names.js";
import type { Scope } from "../scopes/scope.js";
import type { Slot, Slots } from "../scopes/slots.js";
import type { Use, Uses } from "../scopes/uses.js";

export interface Growth {
  readonly slot: Slot;
  readonly container: Container;
  /** Places where entries are added, after the container was created. */
  readonly grows: readonly Use[];
  readonly elementGrows: readonly Use[];
  /** Places where entries are removed, or the container is replaced. */
  readonly shrinks: readonly Use[];
  readonly elementShrinks: readonly Use[];
  /** Its length is compared with a limit. */
  readonly isChecked: boolean;
  /** It is returned, or passed to unknown code. */
  readonly gives: readonly Use[];
}

/** Methods that initialize attributes. */
const FIRST_VALUES =
  /^(?:__init__|__post_init__|__new__|__init_subclass__|setUp|setup_method|initialize|__attrs_post_init__|model_post_init|__setstate__)$/;

export class Containers {
  readonly #known = new Map<Slot, Growth | null>();

  constructor(
    readonly names: Names,
    readonly slots: Slots,
    readonly uses: Uses,
  ) {}

  /** null for a slot without a container that this file creates. */
  of(slot: Slot): Growth | null {
    const known = this.#known.get(slot);
    if (known !== undefined) {
      return known;
    }
    const growth = this.#judge(slot);
    this.#known.set(slot, growth);
    return growth;
  }

  /** Slots of these kinds that hold a container. */
  *all(owner: Scope): Generator<Growth> {
    for (const name of owner.writes.keys()) {
      const growth = this.of(this.slots.slot(owner, name));
      if (growth !== null) {
        yield growth;
      }
    }
  }

  #judge(slot: Slot): Growth | null {
    let container: Container | null = null;
    for (const { kind, value } of this.slots.writesOf(slot)) {
      if ((kind === "assign" || kind === "param") && value !== null) {
        container ??= containerOf(value, this.names);
      }
    }
    if (container === null) {
      return null;
    }
    const uses = [...this.uses.of(slot), ...this.uses.throughOthers(slot)];
    const of = (kind: Use["kind"]) => uses.filter((use) => use.kind === kind);
    return {
      slot,
      container,
      grows: [
        ...of("grow").filter((use) => adds(use, container)),
        // A missing entry is created: defaultdict(list)[key].append(x).
        ...(container.elements === null
          ? []
          : of("element grow").filter(({ by }) => by !== "[]+=")),
      ],
      elementGrows: of("element grow"),
      shrinks: of("shrink").filter((use) => !isFirstValue(use, slot)),
      elementShrinks: of("element shrink"),
      isChecked: of("check").length > 0,
      gives: of("give"),
    };
  }
}

/** An item of a list is replaced, not added. */
function adds(use: Use, container: Container): boolean {
  if (use.by === "[]=" || use.by === "[]+=") {
    return container.kind === "dict";
  }
  return true;
}

/** `x = []` where the slot is first assigned. */
function isFirstValue(use: Use, slot: Slot): boolean {
  if (use.by !== "=") {
    return false;
  }
  const around = use.scope.functionAround;
  if (slot.kind === "class") {
    return around === null || FIRST_VALUES.test(around.name);
  }
  if (slot.kind === "local") {
    return (
      around === slot.owner && slot.owner.writes.get(slot.name)?.[0]?.target.line === use.at.line
    );
  }
  return around === null;
}
