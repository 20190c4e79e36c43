import "./browserLanguage.js";
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
import "./ledger/ledger.css";
import "./heap/heap.css";
import "./diagnosis/diagnosis.css";

showPage(Content);

function Content({ of }: { of: PageDocument }) {
  switch (of.schema) {
    case "tidemark.heapPage/1":
      return <HeapApp page={of} />;
    case "tidemark.heapDiffPage/1":
      return <HeapDiffApp page={of} />;
    case "tidemark.report/1":
      return <ReportApp report={of} />;
    default:
      return <PageFault line="This page shows recordings and heaps, and it contains neither" />;
  }
}
