import "./browserLanguage.js";
import { createRoot } from "react-dom/client";
import { present } from "../../src/model/base/present.js";
import { GpuApp } from "./gpu/GpuApp.js";
import { GpuDiffApp } from "./gpu/GpuDiffApp.js";
import { HeapApp } from "./heap/HeapApp.js";
import { HeapDiffApp } from "./heap/HeapDiffApp.js";
import { PageFault } from "./PageFault.js";
import { PlanApp } from "./plan/PlanApp.js";
import { ReportApp } from "./report/ReportApp.js";
import { type PageDocument, readPageDocument } from "./source/pageDocument.js";
import "uplot/dist/uPlot.min.css";
import "./theme/page.css";
import "./theme/controls.css";
import "./timeline/timeline.css";
import "./flame/flame.css";
import "./sites/sites.css";
import "./gpu/gpu.css";
import "./ledger/ledger.css";
import "./heap/heap.css";
import "./diagnosis/diagnosis.css";
import "./plan/plan.css";

const root = createRoot(present(document.getElementById("root")));
readPageDocument().then(
  (content) =>
    root.render(
      <PageFault.Boundary>
        <Content of={content} />
      </PageFault.Boundary>,
    ),
  (error: unknown) =>
    root.render(<PageFault line={error instanceof Error ? error.message : String(error)} />),
);

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
      return <PlanApp page={of} />;
    default:
      return <ReportApp report={of} />;
  }
}
