/** What the page of a plan holds: the model and the request, from which the page makes plans itself. */
import type { PlanRequest } from "./defaults.js";
import type { ModelShape } from "./shape/model_shape.js";

/** `tidemark.planPage/1`. Encoded with `model/documents/columns.ts`. */
export interface PlanPageDocument {
  readonly schema: "tidemark.planPage/1";
  readonly title: string;
  readonly model: ModelShape;
  readonly request: PlanRequest;
}

export const PLAN_PAGE_SCHEMA = "tidemark.planPage/1";
