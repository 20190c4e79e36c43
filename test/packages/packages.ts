/** The packages, built once for a test file, and a program that leaks to try them on. */
import { execute, repository } from "../run.js";

export interface PackageFiles {
  readonly wheel: string;
  readonly serverWheel: string;
  readonly npmMain: string;
  readonly npmNative: string;
}

/** Absolute paths of what `npm run package` writes. */
export async function buildPackages(): Promise<PackageFiles> {
  const outcome = await execute(["node", "scripts/package.mjs"], { cwd: repository });
  if (outcome.status !== 0) {
    throw new Error(outcome.stdout + outcome.stderr);
  }
  const [wheel = "", serverWheel = "", npmMain = "", npmNative = ""] = outcome.stdout
    .trim()
    .split("\n")
    .slice(-4);
  return { wheel, serverWheel, npmMain, npmNative };
}

/** Keeps 64 MiB, a piece every 10 ms, and ends with exit code 3; with an argument it continues until killed. */
export const leakingProgram = `import sys, time
kept = []
def remember():
    kept.append(bytearray(1 << 20))
    time.sleep(0.01)
print("up", flush=True)
while len(sys.argv) > 1 or len(kept) < 64:
    remember()
    if len(kept) > 600:
        kept.clear()
sys.exit(3)
`;
