import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { armAgent, disarmAgent } from "./attached_agent.js";

/** Larger than every pid (PID_MAX_LIMIT of include/linux/threads.h). */
const NO_PID = 2 ** 22 + 1;

test("a process that ended just before it is entered is reported as ended", async () => {
  const options = {
    libraryPath: fileURLToPath(import.meta.url),
    poolPath: "/proc/1/fd/3",
    periodBytes: 65_536,
    native: false,
    copies: false,
    follow: true,
  };
  const ended = { id: "TM-E020" };
  await expect(armAgent(NO_PID, options, { waitMs: 0 })).rejects.toMatchObject(ended);
  await expect(disarmAgent(NO_PID, { waitMs: 0 })).rejects.toMatchObject(ended);
});
