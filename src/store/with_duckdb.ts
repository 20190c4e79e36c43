import { notInstalled } from "../model/errors/errors.js";

/** Imports a module that needs DuckDB, only when it is used, because DuckDB's native library is large. It may be missing:
in the Python package it is an extra. `what` names the feature that needs it. @throws TidemarkError */
export async function importWithDuckdb<Module>(
  what: string,
  load: () => Promise<Module>,
): Promise<Module> {
  try {
    // DuckDB first, because a module that imports its exports cannot even be linked without it.
    await import("@duckdb/node-api");
    return await load();
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    if (!/^(ERR_)?MODULE_NOT_FOUND$/.test(code ?? "") || !message.includes("@duckdb/")) {
      throw error;
    }
    throw notInstalled(
      `DuckDB is not installed, and ${what} needs it`,
      "pip install 'tidemark-profiler[server]', or, where npm installed Tidemark: npm install -g @duckdb/node-api",
    );
  }
}
