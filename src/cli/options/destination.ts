/** The server that a command sends to or queries, and its token. */
import { readFileSync } from "node:fs";
import type { Command } from "commander";
import { badUsage, fileNotFound, fileUnusable } from "../../model/errors/errors.js";
import { reasonOf } from "../../model/errors/reason.js";
import { checkedUrl, type Destination } from "../../recording/sender/post_connection.js";

export interface DestinationOptions {
  readonly to?: string;
  readonly tokenFile?: string;
}

/** `--to` and `--token-file` of run and attach. */
export function withDestination(command: Command): void {
  command
    .option("--to <url>", "send the recording to this server, too, while it grows")
    .option("--token-file <file>", "with --to: the server's token (or TIDEMARK_TOKEN)");
}

/** Throws TidemarkError for an address or a token file that cannot be used. */
export function destinationOf({ to, tokenFile }: DestinationOptions): { to?: Destination } {
  if (to === undefined) {
    if (tokenFile !== undefined) {
      throw badUsage("--token-file has no effect without --to", "add --to URL");
    }
    return {};
  }
  return { to: { url: checkedUrl(to), token: tokenFrom(tokenFile) } };
}

/** What --server and --token-file name. */
export function serverOf(url: string, tokenFile: string | undefined): Destination {
  return { url: checkedUrl(url), token: tokenFrom(tokenFile) };
}

function tokenFrom(path: string | undefined): string | null {
  const token = path === undefined ? (process.env.TIDEMARK_TOKEN ?? "") : textOf(path);
  if (token === "") {
    if (path !== undefined) {
      throw badUsage(`${path} is empty`, "write the server's token to it");
    }
    return null;
  }
  if (!/^[\x21-\x7e]{1,4096}$/.test(token)) {
    throw badUsage(
      `${path ?? "TIDEMARK_TOKEN"} holds more than one token, or none`,
      "the file must hold the token alone, without its scope",
    );
  }
  return token;
}

function textOf(path: string): string {
  try {
    return readFileSync(path, "utf8").trim();
  } catch (error) {
    const { code, message } = reasonOf(error);
    throw code === "ENOENT"
      ? fileNotFound(path, "token file")
      : fileUnusable(path, "read", message);
  }
}
