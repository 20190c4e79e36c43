/** The selection: its path from a root as text, and its figures. */
import { float64At } from "../../../src/model/base/columns.js";
import { TreeKind } from "../../../src/model/heap/heap_tree.js";
import { formatBytes, formatCount, formatShare } from "../format/numbers.js";
import { Way } from "./HeapHead.js";
import { holderPathTo, type TreeView, typeOf } from "./treeView.js";

export function RowDetails({ view, row }: { view: TreeView; row: number }) {
  const { tree } = view;
  if (row === 0) {
    return (
      <p className="heap-details hint-line">
        A rectangle's size is what would be freed if its object were removed. Click one to zoom in;
        Backspace zooms out.
      </p>
    );
  }
  const type = typeOf(tree, row);
  const own = float64At(tree.shallow, row);
  return (
    <div className="heap-details" aria-live="polite" data-testid="heap-details">
      <Way words={holderPathTo(tree, row)} />
      <p>
        {type !== null && <b>{type}</b>} retains <b>{formatBytes(float64At(tree.retained, row))}</b>{" "}
        ({formatShare(float64At(tree.retained, row) / float64At(tree.retained, 0))} of all) in{" "}
        {formatCount(float64At(tree.objects, row))} objects
        {tree.kind[row] !== TreeKind.root && <>; {formatBytes(own)} without what it holds</>}
        {float64At(tree.address, row) > 0 && (
          <>
            ; at <code>0x{float64At(tree.address, row).toString(16)}</code>
          </>
        )}
      </p>
    </div>
  );
}
