/** Access by token. Only hashes are kept, so neither the server's output nor a core file of it reveals a token. */
import { createHash, timingSafeEqual } from "node:crypto";
import { readFileSync } from "node:fs";
import { badUsage, fileNotFound, fileUnusable } from "../../model/errors/errors.js";
import { reasonOf } from "../../model/errors/reason.js";

export const SCOPES = ["ingest", "read", "act", "admin"] as const;
export type Scope = (typeof SCOPES)[number];

const SHORTEST_TOKEN = 16;

interface Token {
  readonly scope: Scope;
  readonly hash: Buffer;
}

export class Tokens {
  /** null: no token is needed. */
  #tokens: readonly Token[] | null;

  /** `path`: of a token file; null: no token is needed. Throws TidemarkError. */
  constructor(path: string | null) {
    this.#tokens = path === null ? null : tokensIn(path);
  }

  /**
   * Uses the tokens of the file from now on; if it cannot be read, the old ones remain valid. Also throws
   * TidemarkError if the change would remove the need for tokens, or introduce it.
   */
  reload(path: string | null): void {
    if ((path === null) !== (this.#tokens === null)) {
      throw badUsage("token_file cannot be added or removed while the server runs", "restart it");
    }
    this.#tokens = path === null ? null : tokensIn(path);
  }

  /** `authorization`: the header. Admins may do everything. */
  allow(scope: Scope, authorization: string | undefined): boolean {
    if (this.#tokens === null) {
      return true;
    }
    const [, given = ""] = /^Bearer (\S{1,4096})$/.exec(authorization ?? "") ?? [];
    const hash = hashOf(given);
    let allowed = false;
    // All tokens are compared, so that the time reveals nothing.
    for (const token of this.#tokens) {
      const isEqual = timingSafeEqual(token.hash, hash);
      allowed ||= isEqual && (token.scope === scope || token.scope === "admin");
    }
    return allowed;
  }
}

function hashOf(token: string): Buffer {
  return createHash("sha256").update(token).digest();
}

/** Lines of a file, "SCOPE TOKEN" each; empty lines and lines that begin with # are left out. Throws TidemarkError. */
function tokensIn(path: string): Token[] {
  let text: string;
  try {
    text = readFileSync(path, "utf8");
  } catch (error) {
    const { code, message } = reasonOf(error);
    throw code === "ENOENT"
      ? fileNotFound(path, "token file")
      : fileUnusable(path, "read", message);
  }
  const tokens = text.split("\n").flatMap((line, index) => {
    const words = line.trim().split(/\s+/);
    if (words[0] === "" || words[0]?.startsWith("#")) {
      return [];
    }
    const scope = SCOPES.find((name) => name === words[0]);
    const token = words[1] ?? "";
    if (scope === undefined || words.length !== 2 || token.length < SHORTEST_TOKEN) {
      throw badUsage(
        `line ${index + 1} of ${path} is not a token`,
        `each line is one of ${SCOPES.join(", ")} and a token of at least ${SHORTEST_TOKEN} characters`,
      );
    }
    return [{ scope, hash: hashOf(token) }];
  });
  if (tokens.length === 0) {
    throw badUsage(
      `${path} holds no token`,
      "write lines of a scope and a token, as in: ingest TOKEN",
    );
  }
  return tokens;
}
