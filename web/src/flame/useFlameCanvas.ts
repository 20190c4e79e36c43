/**
 * The canvas of a flame graph as part of a React page: its elements, its scene, and the hovered and selected
 * rectangles.
 */
import { useEffect, useRef, useState } from "react";
import type { FlameScene } from "./draw.js";
import { FlameCanvas } from "./flameCanvas.js";

/** Positions refer to the scene's layout; -1: none. A new `tree` ends selection, zoom and hover. */
export function useFlameCanvas(tree: object, scene: FlameScene) {
  const scroller = useRef<HTMLDivElement>(null);
  const spacer = useRef<HTMLDivElement>(null);
  const surface = useRef<HTMLCanvasElement>(null);
  const control = useRef<FlameCanvas | null>(null);
  const [hover, setHover] = useState({ position: -1, x: 0, y: 0 });
  const [selected, setSelected] = useState(-1);
  const [focused, setFocused] = useState(0);

  useEffect(() => {
    if (!scroller.current || !spacer.current || !surface.current) {
      return;
    }
    control.current = new FlameCanvas(scroller.current, spacer.current, surface.current, {
      onHover: (position, x, y) =>
        setHover((now) => (position < 0 && now.position < 0 ? now : { position, x, y })),
      onSelect: setSelected,
      onFocus: setFocused,
    });
    return () => control.current?.destroy();
  }, []);

  useEffect(() => {
    setSelected(-1);
    setFocused(0);
    setHover({ position: -1, x: 0, y: 0 });
    void tree;
  }, [tree]);

  useEffect(() => control.current?.setScene(scene), [scene]);

  return { elements: { scroller, spacer, surface }, control, hover, selected, focused };
}
