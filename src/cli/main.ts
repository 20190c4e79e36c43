import module from "node:module";

// Node 22 and newer keep compiled code between starts; it matters for `--help` and short commands.
// (@types/node is of Node 20, which has no such function.)
(module as { enableCompileCache?: () => unknown }).enableCompileCache?.();

const { runCommandLine } = await import("./command_line.js");
await runCommandLine(process.argv.slice(2));
