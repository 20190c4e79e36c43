/** The ways from roots to the objects of one type. */
import type { NamedHeapTree } from "../../../src/model/heap_page.js";
import { formatBytes, formatCount } from "../page/format.js";
import { Way } from "./HeapHead.js";
import { typeOf, wayTo } from "./treeView.js";

interface TypePlacesProps {
  tree: NamedHeapTree;
  type: string;
  onOpen: (row: number) => void;
  onClose: () => void;
}

export function TypePlaces({ tree, type, onOpen, onClose }: TypePlacesProps) {
  const { start, row, objects, bytes } = tree.places;
  const at = tree.typeNames.indexOf(type);
  const places =
    at < 0 ? [] : Array.from({ length: start[at + 1]! - start[at]! }, (_, n) => start[at]! + n);
  return (
    <div className="heap-places" data-testid="heap-places">
      <h3>
        Ways to <code>{type}</code>
        <button type="button" className="quiet" onClick={onClose}>
          close
        </button>
      </h3>
      {places.length === 0 ? (
        <p className="empty">No way from a root leads to one.</p>
      ) : (
        <ul>
          {places.map((place) => (
            <li key={place}>
              <button type="button" onClick={() => onOpen(row[place]!)}>
                <span>
                  <b>{formatBytes(bytes[place]!)}</b> {formatCount(objects[place]!)}{" "}
                  {objects[place] === 1 ? "object" : "objects"}
                </span>
                <Way words={wordsOf(tree, row[place]!, type)} />
              </button>
            </li>
          ))}
        </ul>
      )}
    </div>
  );
}

/** The row is the type's own objects, or what holds them somewhere below. */
function wordsOf(tree: NamedHeapTree, row: number, type: string): string[] {
  const way = wayTo(tree, row);
  return typeOf(tree, row) === type ? way : [...way, `… ${type}`];
}
