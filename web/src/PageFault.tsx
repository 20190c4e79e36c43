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

/** A document that decodes and yet is not what it should be ends here. */
class Boundary extends Component<{ children: ReactNode }, BoundaryState> {
  override state: BoundaryState = { line: null };

  static getDerivedStateFromError(error: unknown): BoundaryState {
    const detail = error instanceof Error ? error.message : String(error);
    return {
      line: `The recording in this page does not fit together (${detail}); write it again with: tidemark report`,
    };
  }

  override render(): ReactNode {
    return this.state.line === null ? this.props.children : <PageFault line={this.state.line} />;
  }
}

PageFault.Boundary = Boundary;
