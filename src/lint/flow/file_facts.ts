import { Module } from "../scopes/module.js";
import { Names } from "../scopes/names.js";
import { Slots } from "../scopes/slots.js";
import { Uses } from "../scopes/uses.js";
import type { SyntaxTree } from "../syntax/tree.js";
import { Containers } from "./growth.js";
import { Repeats } from "./repeats.js";
import { Resources } from "./resources.js";
import { Tensors } from "./tensors.js";

/** Everything that rules query about one file. Each answer is computed at its first use. */
export class FileFacts {
  readonly module: Module;
  readonly names: Names;
  readonly slots: Slots;
  readonly uses: Uses;
  readonly containers: Containers;
  readonly repeats: Repeats;
  readonly resources: Resources;
  readonly tensors: Tensors;

  constructor(
    readonly tree: SyntaxTree,
    /** The path in findings. */
    readonly path: string,
    /** Names of this module from which other checked files remove entries. */
    readonly emptiedElsewhere: ReadonlySet<string> = new Set(),
  ) {
    this.module = new Module(tree, path);
    this.names = new Names(this.module);
    this.slots = new Slots(this.module, this.names);
    this.uses = new Uses(this.slots, this.names);
    this.containers = new Containers(this.names, this.slots, this.uses);
    this.repeats = new Repeats(this.module, this.names);
    this.resources = new Resources(this.names, this.slots);
    this.tensors = new Tensors(this.module, this.names);
  }
}
