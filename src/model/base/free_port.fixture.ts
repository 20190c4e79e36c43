/** Ports for tests whose servers are stopped and started again, or which cannot choose a port by themselves. */
import { randomInt } from "node:crypto";
import { once } from "node:events";
import { createServer } from "node:net";

const FIRST_PORT = 20_000;
/** net.ipv4.ip_local_port_range */
const FIRST_OF_CONNECTIONS = 32_768;

/** Below the ports that Linux gives to connections: one of those could take it while the server that uses it is down. */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = randomInt(FIRST_PORT, FIRST_OF_CONNECTIONS);
    const probe = createServer();
    const isFree = await new Promise<boolean>((resolve) => {
      probe.on("error", () => resolve(false));
      probe.listen(port, "127.0.0.1", () => resolve(true));
    });
    if (isFree) {
      probe.close();
      await once(probe, "close");
      return port;
    }
  }
}

/** An address where nothing listens, until the test starts a server there. */
export async function freeAddress(): Promise<string> {
  return `127.0.0.1:${await freePort()}`;
}
