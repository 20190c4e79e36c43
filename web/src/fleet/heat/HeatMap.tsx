/** The memory of the instances of a service over time, a row each. Pointer and arrow keys read a cell, a click opens it. */
import {
  type KeyboardEvent,
  type PointerEvent,
  useEffect,
  useLayoutEffect,
  useMemo,
  useRef,
  useState,
} from "react";
import type { HeatMapAnswer } from "../../../../src/model/wire/heat_map.js";
import type { Theme } from "../../theme/theme.js";
import { useWidth } from "../../widgets/useWidth.js";
import type { TimeRange } from "../frame/timeRange.js";
import { HeatReadout, readoutText } from "./HeatReadout.js";
import { AXIS_HEIGHT, cellPicture, drawHeat, heatStyle } from "./heatDraw.js";
import {
  cellAt,
  cellOf,
  cursorAt,
  type HeatCell,
  type HeatCursor,
  type HeatRows,
  heatBox,
  movedCell,
} from "./heatRows.js";

/** A movement of fewer pixels is a click. */
const DRAG_PIXELS = 4;
const coarse = matchMedia("(pointer: coarse)");

interface HeatMapProps {
  answer: HeatMapAnswer;
  shown: HeatRows;
  theme: Theme;
  open: (stream: string) => void;
  choose: (range: TimeRange) => void;
}

export function HeatMap({ answer, shown, theme, open, choose }: HeatMapProps) {
  const [holder, width] = useWidth();
  const canvas = useRef<HTMLCanvasElement>(null);
  const box = useMemo(
    () => heatBox(shown.rows.length, width, coarse.matches ? "coarse" : "fine"),
    [shown, width],
  );
  const height = box.top + box.rowHeight * shown.rows.length + AXIS_HEIGHT;
  const { cell, dragged, listeners, describe } = useCell({ answer, shown, box, open, choose });
  const painted = usePicture(holder, shown, theme, width);
  useLayoutEffect(() => {
    const node = canvas.current;
    if (node !== null) {
      node.width = Math.round(width * devicePixelRatio);
      node.height = Math.round(height * devicePixelRatio);
    }
  }, [width, height]);
  useEffect(() => {
    if (canvas.current === null || painted === null || painted.picture === null) {
      return;
    }
    const { picture, style } = painted;
    const { startMs, stepMs } = answer;
    drawHeat(canvas.current, { shown, box, picture, style, startMs, stepMs, cell, dragged });
    canvas.current.dataset.rows = String(shown.rows.length);
  }, [painted, answer, shown, box, cell, dragged]);
  return (
    <div className="heat" ref={holder}>
      {/* biome-ignore lint/a11y/noInteractiveElementToNoninteractiveRole: navigated with the arrow keys */}
      <canvas
        ref={canvas}
        style={{ width, height }}
        data-testid="heat"
        tabIndex={0}
        role="application"
        aria-label={`Memory of ${shown.rows.length} instances over time; arrow keys read values, Enter opens the instance`}
        {...listeners}
      />
      {cell !== null && dragged === null && (
        <HeatReadout answer={answer} shown={shown} box={box} cell={cell} width={width} />
      )}
      <p className="hidden" role="status">
        {describe}
      </p>
    </div>
  );
}

/** The cells as a picture, painted again only if they or their colours change. */
function usePicture(
  holder: ReturnType<typeof useWidth>[0],
  shown: HeatRows,
  theme: Theme,
  width: number,
) {
  const [painted, setPainted] = useState<{
    readonly picture: HTMLCanvasElement | null;
    readonly style: ReturnType<typeof heatStyle>;
  } | null>(null);
  const isReady = width > 0;
  // biome-ignore lint/correctness/useExhaustiveDependencies: the style's colours follow the theme
  useLayoutEffect(() => {
    if (holder.current !== null && isReady) {
      const style = heatStyle(holder.current);
      setPainted({ picture: cellPicture(shown, style), style });
    }
  }, [holder, shown, theme, isReady]);
  return painted;
}

interface CellOptions extends Omit<HeatMapProps, "theme"> {
  box: ReturnType<typeof heatBox>;
}

function useCell({ answer, shown, box, open, choose }: CellOptions) {
  /** An instance and a time, not a place: rows and steps move when an answer arrives. */
  const [cursor, setCursor] = useState<HeatCursor | null>(null);
  const [drag, setDrag] = useState<{ from: number; to: number } | null>(null);
  /** What the last press, if it was a finger's, had chosen: the next one on the same row opens it. */
  const touched = useRef<number | null>(null);
  const known = useMemo(() => cellOf(shown, answer, cursor), [shown, answer, cursor]);
  const setCell = (cell: HeatCell | null) => setCursor(cursorAt(shown, answer, cell));
  const place = (event: PointerEvent) => {
    const bounds = event.currentTarget.getBoundingClientRect();
    return { x: event.clientX - bounds.left, y: event.clientY - bounds.top };
  };
  const under = (event: PointerEvent) => {
    const { x, y } = place(event);
    return cellAt(shown, box, x, y);
  };
  const isDrag = drag !== null && Math.abs(drag.to - drag.from) > DRAG_PIXELS;
  const timeAt = (x: number) => {
    const share = Math.min(1, Math.max(0, (x - box.left) / box.width));
    return answer.startMs + share * shown.steps * answer.stepMs;
  };
  const listeners = {
    onPointerDown(event: PointerEvent) {
      if (event.button === 0) {
        event.currentTarget.setPointerCapture(event.pointerId);
        const { x } = place(event);
        setDrag({ from: x, to: x });
      }
    },
    onPointerMove(event: PointerEvent) {
      if (drag !== null) {
        setDrag({ ...drag, to: place(event).x });
      }
      if (drag === null || event.pointerType !== "mouse") {
        setCell(under(event));
      }
    },
    onPointerUp(event: PointerEvent) {
      setDrag(null);
      if (drag === null) {
        return;
      }
      if (isDrag) {
        const [from, to] = [timeAt(drag.from), timeAt(drag.to)].sort((a, b) => a - b);
        choose({ startMs: Math.floor(from ?? 0), endMs: Math.ceil(to ?? 0) });
        return;
      }
      const found = under(event);
      const isSecond = event.pointerType === "mouse" || touched.current === found.row;
      touched.current = found.row;
      setCell(found);
      const { y } = place(event);
      if (isSecond && y <= box.top + box.rowHeight * shown.rows.length) {
        openRow(found);
      }
    },
    onPointerCancel: () => setDrag(null),
    onPointerLeave(event: PointerEvent) {
      if (event.pointerType === "mouse") {
        setCell(null);
      }
    },
    onBlur: () => setCell(null),
    onKeyDown(event: KeyboardEvent) {
      if (event.key === "Enter" && known !== null) {
        openRow(known);
      } else if (event.key === "Escape") {
        setCell(null);
      } else {
        const moved = movedCell(shown, known, event.key);
        if (moved === null) {
          return;
        }
        setCell(moved);
      }
      event.preventDefault();
    },
  };
  function openRow({ row }: HeatCell): void {
    const stream = shown.rows[row]?.stream;
    if (stream !== undefined) {
      open(stream);
    }
  }
  return {
    cell: known,
    dragged: isDrag && drag !== null ? ([drag.from, drag.to] as const) : null,
    listeners,
    describe: known === null ? "" : readoutText(answer, shown, known).join(", "),
  };
}
