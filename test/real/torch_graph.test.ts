/** Holders of an autograd graph that contains no Python objects. */

import { afterEach, describe, expect, test } from "vitest";
import { lookUpHolders } from "../../src/holders/holder_lookup.js";
import { present } from "../../src/model/base/present.js";
import { environment } from "../environment.js";
import { startPython, type Waiting } from "../python_program.js";

const program = `
import time
import torch
torch.set_num_threads(1)
net = torch.nn.Linear(64, 64)
class Meter:
    total = 0
meter = Meter()
for _ in range(50):
    loss = net(torch.randn(8, 64)).pow(2).mean()
    meter.total = meter.total + loss
say(0)
def train():
    global loss
    while True:
        loss = net(torch.randn(8, 64)).pow(2).mean()
        meter.total = meter.total + loss
        time.sleep(0.05)
threading.Thread(target=train, daemon=True).start()
say(0)
`;
/** An address that is in no object, like a block that a graph keeps. */
const OF_GRAPH = 0x7000_0000_1000;
const FEWEST_LOOKS = 2;
const MOST_LOOKS = 20;
let waiting: Waiting;
afterEach(async () => await waiting.stop());

describe.skipIf(environment.torchPython === null)("a total of losses", () => {
  const snapshot = () => {
    const sites = [{ site: "loss", python: false, addresses: [OF_GRAPH], swelling: null }];
    return lookUpHolders({ pid: waiting.pid, sites, unsampled: null }).batch?.rows[0];
  };

  test("keeps the graphs of all steps, and the last loss that of one", async () => {
    waiting = await startPython({ path: present(environment.torchPython) }, program);
    const path = ["module __main__", "meter", ".total"];
    expect(snapshot()).toMatchObject({ graph: 1, path });
    await waiting.go();
    // It is a different tensor at each step, so a snapshot may miss it, and then reports that.
    const wanted = path.join(" ");
    const found: (string | undefined)[] = [];
    while (found.length < FEWEST_LOOKS || (!found.includes(wanted) && found.length < MOST_LOOKS)) {
      found.push(snapshot()?.path.join(" "));
    }
    expect(found).toContain(wanted);
    expect(found.filter((words) => words?.endsWith(" loss"))).toEqual([]);
  }, 600_000); // a look at torch's heap takes 10 s on a slow machine
});
