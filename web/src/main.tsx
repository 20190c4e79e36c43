import "./page/language.js";
import { createRoot } from "react-dom/client";
import { GpuApp } from "./gpu/GpuApp.js";
import { App } from "./page/App.js";
import { PageFault } from "./page/PageFault.js";
import { pageDocument } from "./source/pageDocument.js";
import "uplot/dist/uPlot.min.css";
import "./page/page.css";
import "./page/controls.css";
import "./timeline/timeline.css";
import "./flame/flame.css";
import "./sites/sites.css";
import "./gpu/gpu.css";
import "./ledger/ledger.css";

const root = createRoot(document.getElementById("root") as HTMLElement);
pageDocument.read().then(
  (content) =>
    root.render(
      <PageFault.Boundary>
        {content.schema === "tidemark.gpuPage/1" ? (
          <GpuApp page={content} />
        ) : (
          <App report={content} />
        )}
      </PageFault.Boundary>,
    ),
  (error: unknown) =>
    root.render(<PageFault line={error instanceof Error ? error.message : String(error)} />),
);
