/** The paths from roots to the objects of one type. */
import type { NamedHeapTree } from "../../../src/model/documents/heap/heap_page.js";
import { formatBytes, formatCount } from "../format/numbers.js";
import { Way } from "./HeapHead.js";
import { holderPathTo, placesOf, typeOf } from "./treeView.js";

interface TypePlacesProps {
  tree: NamedHeapTree;
  type: string;
  onOpen: (row: number) => void;
  onClose: () => void;
}

export function TypePlaces({ tree, type, onOpen, onClose }: TypePlacesProps) {
  const places = placesOf(tree, type);
  return (
    <div className="heap-places" data-testid="heap-places">
      <h3>
        Paths to <code>{type}</code>
        <button type="button" className="quiet" onClick={onClose}>
          close
        </button>
      </h3>
      {places.length === 0 ? (
        <p className="empty">No path from a root leads to one.</p>
      ) : (
        <ul>
          {places.map(({ row, objects, bytes }) => (
            <li key={row}>
              <button type="button" onClick={() => onOpen(row)}>
                <span>
                  <b>{formatBytes(bytes)}</b> {formatCount(objects)}{" "}
                  {objects === 1 ? "object" : "objects"}
                </span>
                <Way words={wordsOf(tree, row, type)} />
              </button>
            </li>
          ))}
        </ul>
      )}
    </div>
  );
}

/** True if the row is the type's own objects, or directly or indirectly holds them. */
function wordsOf(tree: NamedHeapTree, row: number, type: string): string[] {
  const way = holderPathTo(tree, row);
  return typeOf(tree, row) === type ? way : [...way, `… ${type}`];
}
