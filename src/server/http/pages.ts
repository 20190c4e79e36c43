/** The pages: one HTML file for every address, and its scripts and styles, which change their names when they change. */
import { readdirSync, readFileSync } from "node:fs";
import { extname, join } from "node:path";
import type { Hono } from "hono";

const TYPES: Readonly<Record<string, string>> = {
  ".js": "text/javascript; charset=utf-8",
  ".css": "text/css; charset=utf-8",
  ".html": "text/html; charset=utf-8",
};

/** `folder` holds index.html and assets/. All files are read at the start, so no request reaches the file system. */
export function addPages(app: Hono, folder: string): void {
  const page = textOf(join(folder, "index.html"));
  for (const name of namesIn(join(folder, "assets"))) {
    const type = TYPES[extname(name)];
    if (type !== undefined) {
      const text = readFileSync(join(folder, "assets", name), "utf8");
      app.get(`/assets/${name}`, (context) =>
        context.body(text, 200, {
          "content-type": type,
          "cache-control": "public, max-age=31536000, immutable",
        }),
      );
    }
  }
  for (const address of [
    "/",
    "/service",
    "/verdicts",
    "/alerts",
    "/sizes",
    "/actions",
    "/artifacts",
    "/artifacts/:id/:name",
    "/ingest",
    "/instance/:stream",
  ]) {
    app.get(address, (context) =>
      page === null
        ? context.text(
            "The pages are not part of this installation; the API under /api/v1 is.\n",
            404,
          )
        : context.body(page, 200, {
            "content-type": TYPES[".html"] ?? "",
            "cache-control": "no-cache",
          }),
    );
  }
}

function textOf(path: string): string | null {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return null;
  }
}

function namesIn(folder: string): string[] {
  try {
    return readdirSync(folder);
  } catch {
    return [];
  }
}
