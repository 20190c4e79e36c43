/** The pages of one GPU snapshot and of two, dist/web/gpu.html: reports of recordings do not contain their code. */
import "./browserLanguage.js";
import { GPU_DIFF_PAGE_SCHEMA, GPU_PAGE_SCHEMA } from "../../src/model/documents/gpu/gpu_page.js";
import { GpuApp } from "./gpu/GpuApp.js";
import { GpuDiffApp } from "./gpu/GpuDiffApp.js";
import { PageFault } from "./PageFault.js";
import { showPage } from "./showPage.js";
import "./flame/flame.css";
import "./sites/sites.css";
import "./gpu/gpu.css";

showPage(({ of }) => {
  switch (of.schema) {
    case GPU_PAGE_SCHEMA:
      return <GpuApp page={of} />;
    case GPU_DIFF_PAGE_SCHEMA:
      return <GpuDiffApp page={of} />;
    default:
      return <PageFault line="This page shows GPU snapshots, and it contains none" />;
  }
});
