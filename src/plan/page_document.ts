/** What the page of a plan holds: the model and the request, from which the page makes plans itself. */
import type { PlanComparisonJson } from "../model/documents/plan_document.js";
import type { PlanRequest } from "./defaults.js";
import type { ModelShape } from "./shape/model_shape.js";

/** `tidemark.planPage/1`. Encoded with `model/documents/columns.ts`. */
export interface PlanPageDocument {
  readonly schema: "tidemark.planPage/1";
  readonly title: string;
  readonly model: ModelShape;
  readonly request: PlanRequest;
  /** Of the plan with the options of the command line, if it was compared with a measurement. */
  readonly comparison?: PlanComparisonJson;
}

export const PLAN_PAGE_SCHEMA = "tidemark.planPage/1";
