import { runCommandLine } from "./command_line.js";

await runCommandLine(process.argv.slice(2));
