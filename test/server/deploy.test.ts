/**
 * The systemd unit and the container image: systemd accepts the unit, and the image's command runs as an ordinary user on
 * a read-only root. No container engine runs here, so a kernel mount namespace takes its place.
 */
import { execFileSync, spawnSync } from "node:child_process";
import { chmodSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { readConfig } from "../../src/server/config.js";
import { removeScratch, repository, scratch, tidemark } from "../run.js";

afterAll(removeScratch);

const text = (name: string) => readFileSync(join(repository, "deploy", name), "utf8");
const runs = (program: string, ...words: string[]) =>
  spawnSync(program, words, { stdio: "ignore" }).status === 0;

test.skipIf(!runs("systemd-analyze", "--version"))("systemd accepts the unit", () => {
  const unit = join(scratch(), "tidemark.service");
  writeFileSync(unit, text("tidemark.service").replace("/usr/local/bin/tidemark", tidemark));
  const { status, stderr } = spawnSync("systemd-analyze", ["verify", unit], { encoding: "utf8" });
  expect([status, stderr]).toEqual([0, ""]);
});

test("the image's files fit the program", () => {
  const config = readConfig(join(repository, "deploy/serve.yaml"));
  expect(config).toMatchObject({
    listen: { host: "0.0.0.0", port: 7070 },
    store: "duckdb:/var/lib/tidemark",
    tokenFile: "/run/secrets/tidemark-tokens",
  });
  const image = text("Dockerfile");
  const manifest = readFileSync(join(repository, "package.json"), "utf8");
  const { dependencies } = JSON.parse(manifest) as { dependencies: Record<string, string> };
  expect(image).toContain(`@duckdb/node-api@${dependencies["@duckdb/node-api"]} `);
  expect(image).toContain(`VOLUME ${config.store?.replace("duckdb:", "")}\n`);
  expect(image).toMatch(/^USER \d+$/m);
  const [, command = "[]"] = /^CMD (.*)$/m.exec(image) ?? [];
  expect(JSON.parse(command)).toEqual(["serve", "--config", "/etc/tidemark/serve.yaml"]);
});

/** Runs a server with the image's configuration, its health check, and a stop. */
const INSIDE = `set -eu
cd "$DATA"
: >out # grep may come before the server
"$TIDEMARK" serve --config "$CONFIG" --listen 127.0.0.1:0 --json >out 2>err &
for wait in $(seq 300); do grep -q '}' out && break; sleep 0.1; done
URL=$(sed -n 's/.*"url": *"\\([^"]*\\)".*/\\1/p' out)
node -e "$HEALTH"
kill -TERM $!
wait $!
touch /etc/tidemark-was-here 2>/dev/null && exit 9
test "$(id -u)" = 65534
`;

test.skipIf(!runs("unshare", "--mount", "true"))(
  "the server runs without root on a read-only root",
  () => {
    const folder = scratch();
    const data = join(folder, "data");
    mkdirSync(data);
    chmodSync(folder, 0o755);
    chmodSync(data, 0o777);
    const config = join(folder, "serve.yaml");
    const tokens = join(folder, "tokens");
    writeFileSync(tokens, "read a-token-for-reading\n");
    writeFileSync(
      config,
      text("serve.yaml")
        .replace("/var/lib/tidemark", data)
        .replace(/\/run.*-tokens/, tokens),
    );
    const [, check = "[]"] = /CMD (\["node".*)$/m.exec(text("Dockerfile")) ?? [];
    const [, , health = ""] = JSON.parse(check) as string[];
    const script = `mount --make-rprivate / && mount --bind "$DATA" "$DATA" && mount -o remount,bind,ro / &&
    exec setpriv --reuid=65534 --regid=65534 --clear-groups --no-new-privs sh -c "$INSIDE"`;
    const outcome = spawnSync("unshare", ["--mount", "sh", "-c", script], {
      encoding: "utf8",
      env: {
        PATH: process.env.PATH,
        INSIDE: INSIDE.replace(
          'node -e "$HEALTH"',
          `node -e "$(printf %s "$HEALTH" | sed "s|http://127.0.0.1:7070|$URL|")"`,
        ),
        ...{ DATA: data, CONFIG: config, TIDEMARK: tidemark, HEALTH: health },
      },
    });
    const said = execFileSync("cat", [join(data, "err")], { encoding: "utf8" });
    expect([outcome.status, outcome.stderr, said]).toEqual([
      0,
      "",
      expect.stringMatching(/serving http:\/\/127\.0\.0\.1:\d+ from .*data/),
    ]);
  },
);
