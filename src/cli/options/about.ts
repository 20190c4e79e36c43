/** What a command file declares about its command. `npm run generate` copies it to `command_list.ts`. */

/** Headings of `tidemark --help`, in order. */
export const COMMAND_GROUPS = {
  record: "Record a program:",
  recordings: "Read a recording:",
  processes: "Inspect a running process or a core file:",
  devices: "Inspect devices:",
  source: "Check source code:",
  fleet: "Watch a fleet:",
  machine: "Check this machine:",
} as const;

export type CommandGroup = keyof typeof COMMAND_GROUPS;

/** Exported by a command file as `about`. Its values must be literals, because the generator does not run the file. */
export interface CommandAbout {
  readonly group: CommandGroup;
  /** One line for `tidemark --help`. */
  readonly summary: string;
  /**
   * Whether the command prints rows that `--top` and `--filter` select, and whether the rows have a size for
   * `--min`. A test compares the command's options with this.
   */
  readonly rows: "sized" | "without size" | "top only" | "none";
}

/** An entry of `command_list.ts`: what the program knows about a command before loading it. */
export interface CommandEntry<Command> {
  readonly name: string;
  readonly group: CommandGroup;
  readonly summary: string;
  readonly load: () => Promise<{
    readonly about: CommandAbout;
    readonly buildCommand: () => Command;
  }>;
}
