/** Models of test/data/plan/models.json, served as `tidemark plan --serve` plans them. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { PlanJson, PlanPartName } from "../../src/model/documents/plan_document.js";
import { planMemory } from "../../src/plan/plan.js";
import { readShape } from "../../src/plan/shape/read_shape.js";
import { type PlanWords, requestOf } from "../../src/plan/words.js";
import { repository } from "../run.js";

export const MIB = 2 ** 20;
export const MODELS = JSON.parse(
  readFileSync(join(repository, "test/data/plan/models.json"), "utf8"),
) as Record<string, { config: Record<string, unknown> }>;

export function served(name: string, words: PlanWords, changes: object = {}): PlanJson {
  const values = { ...MODELS[name]?.config, ...changes };
  return planMemory(readShape(values, name, name), requestOf({ serve: true, ...words }));
}

export const bytesOf = ({ parts }: Pick<PlanJson, "parts">, name: PlanPartName): number =>
  parts.find(({ part }) => part === name)?.bytes ?? 0;
