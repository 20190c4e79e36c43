import "../browserLanguage.js";
import { createRoot } from "react-dom/client";
import { present } from "../../../src/model/base/present.js";
import { PageFault } from "../PageFault.js";
import { FleetApp } from "./FleetApp.js";
import "uplot/dist/uPlot.min.css";
import "../theme/page.css";
import "../theme/controls.css";
import "../timeline/timeline.css";
import "../flame/flame.css";
import "../sites/sites.css";
import "../ledger/ledger.css";
import "../diagnosis/diagnosis.css";
import "./fleet.css";
import "./heat/heat.css";

createRoot(present(document.getElementById("root"))).render(
  <PageFault.Boundary>
    <FleetApp />
  </PageFault.Boundary>,
);
