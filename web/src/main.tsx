import "./browserLanguage.js";
import { GpuApp } from "./gpu/GpuApp.js";
import { GpuDiffApp } from "./gpu/GpuDiffApp.js";
import { HeapApp } from "./heap/HeapApp.js";
import { HeapDiffApp } from "./heap/HeapDiffApp.js";
import { PageFault } from "./PageFault.js";
import { ReportApp } from "./report/ReportApp.js";
import { showPage } from "./showPage.js";
import type { PageDocument } from "./source/pageDocument.js";
import "uplot/dist/uPlot.min.css";
import "./timeline/timeline.css";
import "./flame/flame.css";
import "./sites/sites.css";
import "./gpu/gpu.css";
import "./ledger/ledger.css";
import "./heap/heap.css";
import "./diagnosis/diagnosis.css";

showPage(Content);

function Content({ of }: { of: PageDocument }) {
  switch (of.schema) {
    case "tidemark.gpuPage/1":
      return <GpuApp page={of} />;
    case "tidemark.gpuDiffPage/1":
      return <GpuDiffApp page={of} />;
    case "tidemark.heapPage/1":
      return <HeapApp page={of} />;
    case "tidemark.heapDiffPage/1":
      return <HeapDiffApp page={of} />;
    case "tidemark.planPage/1":
      return (
        <PageFault line="This page shows no plans; write one with: tidemark plan MODEL -o FILE.html" />
      );
    default:
      return <ReportApp report={of} />;
  }
}
