/** `--allocator NAME` of commands that start a program. */
import { type Command, Option } from "commander";
import {
  ALLOCATOR_NAMES,
  allocatorDeployment,
  allocatorEnvironment,
} from "../../allocators/index.js";

export interface AllocatorOptions {
  readonly allocator?: string;
}

export function withAllocator(command: Command): Command {
  return command.addOption(
    new Option("--allocator <name>", "start the program with another allocator or setting").choices(
      ALLOCATOR_NAMES,
    ),
  );
}

/** The variables for the program. Throws TM-E090 if the allocator is not installed, TM-E002 if Python is too old. */
export function allocatorOf(
  { allocator }: AllocatorOptions,
  command: readonly string[],
): { environment?: Readonly<Record<string, string>> } {
  return allocator === undefined ? {} : { environment: allocatorEnvironment(allocator, command) };
}

/** A line of the summary: the program ran under this setting. */
export function allocatorNote(allocator: string): string {
  const how = allocatorDeployment(allocator);
  return `the program ran under --allocator ${allocator}${how === "" ? "" : ` (without Tidemark: ${how})`}`;
}
