import type { ReactNode } from "react";
import { createRoot } from "react-dom/client";
import { present } from "../../src/model/base/present.js";
import { PageFault } from "./PageFault.js";
import { type PageDocument, readPageDocument } from "./source/pageDocument.js";
import "./theme/page.css";
import "./theme/controls.css";

/** Shows the document that the HTML file contains, or one line about what is wrong with it. */
export function showPage(Content: (props: { of: PageDocument }) => ReactNode): void {
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
}
