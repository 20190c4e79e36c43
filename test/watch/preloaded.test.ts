/** Programs whose environment armed the agent at their start, as in a container image: the collector uses that agent. */
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { present } from "../../src/model/base/present.js";
import { open, repository, summaryOf, until } from "../run.js";
import { LEAK, stopped, withWatchTest } from "./watched.js";

const watched = withWatchTest();

test("an agent with memory in a folder, and one whose folder is missing, are recorded and stay as they were", async () => {
  const { folder, name } = watched();
  const armed = (service: string, at: string) =>
    watched().python(LEAK, service, [
      "env",
      `LD_PRELOAD=${join(repository, "dist/native/libtidemark.so")}`,
      `TIDEMARK=dir=${at}`,
    ]);
  armed("folder", folder);
  armed("memory", join(folder, "missing"));
  await until(() => readdirSync(folder).some((file) => file.endsWith(".pool")));
  const { child, said } = watched().watch("--config", watched().policy());
  const services = ["folder", "memory"];
  await until(() =>
    services.every((service) => {
      const path = watched().recordingOf(service, true);
      return path !== undefined && open(path).snapshots.length > 3;
    }),
  );
  expect(await stopped(child)).toBe(0);
  expect(said()).not.toContain("could not be attached");
  for (const service of services) {
    expect(said()).toContain(`${name}-${service} 7`);
    const { sites, limits } = await summaryOf(present(watched().recordingOf(service, true)));
    expect(sites[0]?.stack.map((frame) => frame.function)).toContain("remember");
    expect(limits.join(" ")).toContain("program's environment had armed the agent");
  }
});
