/** The page of a plan, dist/web/plan.html: reports have no use for the planner, which was more than a quarter of their size. */
import "./browserLanguage.js";
import { PLAN_PAGE_SCHEMA } from "../../src/plan/page_document.js";
import { PageFault } from "./PageFault.js";
import { PlanApp } from "./plan/PlanApp.js";
import { showPage } from "./showPage.js";
import "./plan/plan.css";

showPage(({ of }) =>
  of.schema === PLAN_PAGE_SCHEMA ? (
    <PlanApp page={of} />
  ) : (
    <PageFault line="This page shows plans, and it contains none; write one with: tidemark plan MODEL -o FILE.html" />
  ),
);
