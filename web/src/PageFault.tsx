import { Component, type ReactNode } from "react";

/** One line instead of a page: the recording is missing or damaged. */
export function PageFault({ line }: { line: string }) {
  return (
    <main className="fault" role="alert">
      <h1>This report cannot be shown</h1>
      <p>{line}</p>
    </main>
  );
}

interface BoundaryState {
  line: string | null;
}

/** Handles a document that decodes but has unexpected contents. */
class Boundary extends Component<{ children: ReactNode }, BoundaryState> {
  override state: BoundaryState = { line: null };

  static getDerivedStateFromError(error: unknown): BoundaryState {
    const detail = error instanceof Error ? error.message : String(error);
    return {
      line: `The recording in this page is inconsistent (${detail}); write it again with: tidemark report`,
    };
  }

  override render(): ReactNode {
    return this.state.line === null ? this.props.children : <PageFault line={this.state.line} />;
  }
}

PageFault.Boundary = Boundary;
