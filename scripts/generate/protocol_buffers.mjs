/** The messages of Grafana's queries in TypeScript, from src/server/grafana/querier.proto. */
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { capture } from "../command.mjs";
import { root } from "../setup.mjs";

const folder = "src/server/grafana";

/** @returns {Promise<[string, string][]>} path from the root -> what the file must hold */
export async function protocolBuffers() {
  const out = mkdtempSync(join(tmpdir(), "tidemark-messages-"));
  try {
    const template = JSON.stringify({
      version: "v2",
      plugins: [
        {
          local: join(root, "node_modules/.bin/protoc-gen-es"),
          out,
          opt: ["target=ts", "import_extension=js"],
        },
      ],
    });
    const { status, output } = await capture(join(root, "node_modules/.bin/buf"), [
      ...["generate", join(root, folder), "--template", template],
    ]);
    if (status !== 0) {
      throw new Error(`buf generate: ${output}`);
    }
    return [[`${folder}/querier_pb.ts`, readFileSync(join(out, "querier_pb.ts"), "utf8")]];
  } finally {
    rmSync(out, { recursive: true });
  }
}
