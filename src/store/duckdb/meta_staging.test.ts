import { expect, test } from "vitest";
import { MetaStaging } from "./meta_staging.js";
import type { RowDatabase } from "./row_database.js";

test("a transaction that the database has ended by itself fails with the reason for that", async () => {
  const metaWriter = {
    async run(sql: string): Promise<void> {
      if (sql === "COMMIT") {
        throw new Error("No space left on device");
      } else if (sql === "ROLLBACK") {
        throw new Error("no transaction is active");
      }
    },
  };
  const database = { metaWriter, localTables: [], keep: async () => {} };
  const staging = new MetaStaging(database as unknown as RowDatabase);
  staging.add("frames", 1n);
  await expect(staging.commit()).rejects.toThrow("No space left on device");
});
