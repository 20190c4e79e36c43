/** The tree next to the map: the same rows as text, expanded line by line. */

import { Fragment, useEffect, useRef, useState } from "react";
import { float64At } from "../../../src/model/base/columns.js";
import { formatBytes, formatCount, formatShare } from "../format/numbers.js";
import type { Theme } from "../theme/theme.js";
import { nameOf, rowsTo, type TreeView, typeOf } from "./treeView.js";
import { typeColour } from "./typeColours.js";

interface HeapTreeProps {
  view: TreeView;
  theme: Theme;
  zoom: number;
  selected: number;
  onOpen: (row: number) => void;
}

const FIRST_SHOWN = 40;
/** For a chain of a thousand objects, only the lines near the selection. */
const MOST_DEPTH = 30;

export function HeapTree({ view, theme, zoom, selected, onOpen }: HeapTreeProps) {
  const [open, setOpen] = useState<ReadonlySet<number>>(() => new Set());
  const list = useRef<HTMLDivElement>(null);
  // The lines on the path to the selection are expanded; the reader may collapse them.
  useEffect(() => {
    setOpen((now) => new Set([...now, ...rowsTo(view.tree, selected)]));
  }, [view, selected]);
  // biome-ignore lint/correctness/useExhaustiveDependencies: only a new selection scrolls the list
  useEffect(() => {
    const line = list.current?.querySelector("[aria-selected=true]");
    if (line && list.current) {
      reveal(list.current, line as HTMLElement);
    }
  }, [selected, open]);
  const top = rowsTo(view.tree, zoom).length < MOST_DEPTH / 2 ? 0 : zoom;
  const toggle = (row: number) =>
    setOpen((now) => {
      const next = new Set(now);
      if (!next.delete(row)) {
        next.add(row);
      }
      return next;
    });
  return (
    <div className="heap-tree" role="tree" aria-label="Memory by holder" ref={list}>
      <Lines {...{ view, theme, open, selected, onOpen, toggle }} above={top} depth={0} />
    </div>
  );
}

/** Scrolls only the list, not the page. */
function reveal(list: HTMLElement, line: HTMLElement): void {
  const top = line.offsetTop - list.offsetTop;
  if (top < list.scrollTop || top + line.offsetHeight > list.scrollTop + list.clientHeight) {
    list.scrollTop = top - list.clientHeight / 3;
  }
}

interface LinesProps extends Omit<HeapTreeProps, "zoom"> {
  open: ReadonlySet<number>;
  toggle: (row: number) => void;
  above: number;
  depth: number;
}

function Lines({ above, depth, ...shared }: LinesProps) {
  const { view, theme, open, selected, onOpen, toggle } = shared;
  const { tree } = view;
  const [shown, setShown] = useState(FIRST_SHOWN);
  const children = view.children(above);
  const place = selected === above ? -1 : children.indexOf(selected);
  const count = Math.max(shown, place + 1);
  return (
    <>
      {Array.from(children.subarray(0, count), (row) => {
        const below = view.children(row).length > 0;
        const isOpen = below && open.has(row) && depth < MOST_DEPTH;
        const share = float64At(tree.retained, row) / float64At(tree.retained, above);
        return (
          <Fragment key={row}>
            <div
              className="heap-line"
              role="treeitem"
              tabIndex={0}
              aria-level={depth + 1}
              aria-selected={row === selected}
              aria-expanded={below ? isOpen : undefined}
              style={{ paddingLeft: 6 + Math.min(depth, 12) * 14 }}
              onClick={() => onOpen(row)}
              onKeyDown={(event) => {
                if (event.target !== event.currentTarget) {
                  return;
                }
                if (event.key === "Enter") {
                  onOpen(row);
                } else if (event.key === "ArrowRight" && below && !isOpen) {
                  toggle(row);
                } else if (event.key === "ArrowLeft" && isOpen) {
                  toggle(row);
                } else {
                  return;
                }
                event.preventDefault();
              }}
            >
              <button
                type="button"
                className="heap-twist"
                tabIndex={-1}
                aria-label={isOpen ? "Close" : "Open"}
                disabled={!below}
                onClick={(event) => {
                  event.stopPropagation();
                  toggle(row);
                }}
              >
                {below ? (isOpen ? "▾" : "▸") : ""}
              </button>
              <i
                className="dot"
                style={{ background: typeColour(typeOf(tree, row), theme).fill }}
              />
              <span className="heap-name" title={nameOf(tree, row)}>
                {nameOf(tree, row)}
              </span>
              <span className="heap-size" title={`${formatShare(share)} of the line above`}>
                {formatBytes(float64At(tree.retained, row))}
              </span>
            </div>
            {isOpen && <Lines {...shared} above={row} depth={depth + 1} />}
          </Fragment>
        );
      })}
      {count < children.length && (
        <button
          type="button"
          className="quiet heap-more"
          onClick={() => setShown(count + 10 * FIRST_SHOWN)}
        >
          {formatCount(children.length - count)} more
        </button>
      )}
    </>
  );
}
