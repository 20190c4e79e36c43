import { type RefObject, useLayoutEffect, useRef, useState } from "react";

/** The current width of an element in whole CSS pixels. */
export function useWidth(): [RefObject<HTMLDivElement | null>, number] {
  const holder = useRef<HTMLDivElement>(null);
  const [width, setWidth] = useState(0);
  useLayoutEffect(() => {
    const node = holder.current;
    if (!node) {
      return;
    }
    const measure = () => setWidth(Math.floor(node.clientWidth));
    measure();
    const observer = new ResizeObserver(measure);
    observer.observe(node);
    return () => observer.disconnect();
  }, []);
  return [holder, width];
}
