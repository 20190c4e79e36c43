/** The flame graph's canvas: view, animation, pointer and keyboard. It handles rectangles, not profiles. */

import { float64At, uint32At } from "../../../src/model/base/columns.js";
import { present } from "../../../src/model/base/present.js";
import {
  drawFlame,
  type FlameFont,
  type FlameScene,
  type FlameView,
  layoutHeight,
  ROW_HEIGHT,
  rowAt,
  rowTop,
} from "./draw.js";
import { positionAt, rowOf } from "./layout.js";

const ZOOM_MS = 220;

interface FlameEvents {
  /** The rectangle under the pointer, or -1; x and y in the viewport. */
  onHover(position: number, x: number, y: number): void;
  onSelect(position: number): void;
  onFocus(position: number): void;
}

export class FlameCanvas {
  #scene: FlameScene | null = null;
  readonly #view: FlameView = {
    start: 0,
    end: 0,
    scrollTop: 0,
    width: 0,
    height: 0,
    selected: -1,
    hovered: -1,
  };
  #focused = 0;
  #font: FlameFont = { css: "", characterWidth: 7 };
  #frameRequest = 0;
  #frames = 0;
  #animation: { from: [number, number]; to: [number, number]; startedMs: number } | null = null;
  readonly #resizes: ResizeObserver;
  readonly #listening = new AbortController();
  readonly #context: CanvasRenderingContext2D;

  readonly #scroller: HTMLElement;
  readonly #spacer: HTMLElement;
  readonly #canvas: HTMLCanvasElement;
  readonly #events: FlameEvents;

  /** `scroller` scrolls, `spacer` within it has the layout's height, `canvas` sticks to its top. */
  constructor(
    scroller: HTMLElement,
    spacer: HTMLElement,
    canvas: HTMLCanvasElement,
    events: FlameEvents,
  ) {
    this.#scroller = scroller;
    this.#spacer = spacer;
    this.#canvas = canvas;
    this.#events = events;

    this.#context = present(canvas.getContext("2d", { alpha: false }));
    this.#resizes = new ResizeObserver(() => this.#resize());
    this.#resizes.observe(scroller);
    const { signal } = this.#listening;
    scroller.addEventListener("scroll", () => this.#scrolled(), { signal, passive: true });
    canvas.addEventListener("pointermove", (event) => this.#pointed(event), { signal });
    canvas.addEventListener("pointerleave", () => this.#hover(-1, 0, 0), { signal });
    canvas.addEventListener("click", (event) => this.#clicked(event), { signal });
    canvas.addEventListener("wheel", (event) => this.#wheeled(event), { signal, passive: false });
    canvas.addEventListener("keydown", (event) => this.#pressed(event), { signal });
    this.#resize();
  }

  destroy(): void {
    this.#listening.abort();
    this.#resizes.disconnect();
    cancelAnimationFrame(this.#frameRequest);
  }

  /** A new layout starts at its root; the same layout in other colours keeps the view. */
  setScene(scene: FlameScene): void {
    const sameLayout = this.#scene?.layout === scene.layout;
    const turned = this.#scene?.rootsBelow !== scene.rootsBelow;
    this.#scene = scene;
    if (!sameLayout) {
      this.#animation = null;
      this.#view.start = 0;
      this.#view.end = scene.layout.end[0] ?? 0;
      this.#view.selected = -1;
      this.#view.hovered = -1;
      this.#focused = 0;
    }
    this.#spacer.style.height = `${layoutHeight(scene.layout)}px`;
    this.#scroller.style.setProperty("--layout-height", `${layoutHeight(scene.layout)}px`);
    if (!sameLayout || turned) {
      this.#scroller.scrollTop = scene.rootsBelow ? layoutHeight(scene.layout) : 0;
    }
    this.#requestFrame();
  }

  /** Zooms so that a rectangle fills the width, and reports it. */
  focus(position: number): void {
    if (!this.#scene || position < 0 || position >= this.#scene.layout.node.length) {
      return;
    }
    this.#focused = position;
    this.#zoomTo(
      float64At(this.#scene.layout.start, position),
      float64At(this.#scene.layout.end, position),
    );
    this.#reveal(position);
    this.#events.onFocus(position);
  }

  select(position: number): void {
    if (!this.#scene || position >= this.#scene.layout.node.length) {
      return;
    }
    this.#view.selected = position;
    if (position >= 0) {
      const { layout } = this.#scene;
      const within =
        float64At(layout.start, position) < this.#view.end &&
        float64At(layout.end, position) > this.#view.start;
      if (!within) {
        this.focus(this.#ancestorAtFocus(position));
      }
      this.#reveal(position);
    }
    this.#events.onSelect(position);
    this.#requestFrame();
  }

  /** Zooms one step out, to the parent of the current root. */
  zoomOut(): void {
    if (this.#scene && this.#focused > 0) {
      this.focus(uint32At(this.#scene.layout.parent, this.#focused));
    }
  }

  get selected(): number {
    return this.#view.selected;
  }

  #ancestorAtFocus(position: number): number {
    const { layout } = present(this.#scene);
    let at = this.#focused;
    while (
      at > 0 &&
      !(
        float64At(layout.start, at) <= float64At(layout.start, position) &&
        float64At(layout.end, at) >= float64At(layout.end, position)
      )
    ) {
      at = uint32At(layout.parent, at);
    }
    return at;
  }

  #zoomTo(start: number, end: number): void {
    if (matchMedia("(prefers-reduced-motion: reduce)").matches) {
      this.#view.start = start;
      this.#view.end = end;
    } else {
      this.#animation = {
        from: [this.#view.start, this.#view.end],
        to: [start, end],
        startedMs: performance.now(),
      };
    }
    this.#requestFrame();
  }

  /** Scrolls so that a rectangle's row is visible. */
  #reveal(position: number): void {
    const scene = present(this.#scene);
    const top = rowTop(scene, this.#view, rowOf(scene.layout, position));
    const { scrollTop, height } = this.#view;
    if (top < scrollTop) {
      this.#scroller.scrollTop = top;
    } else if (top + ROW_HEIGHT > scrollTop + height) {
      this.#scroller.scrollTop = top + ROW_HEIGHT - height;
    }
  }

  #resize(): void {
    const { clientWidth, clientHeight } = this.#scroller;
    const ratio = devicePixelRatio || 1;
    this.#view.width = clientWidth;
    this.#view.height = clientHeight;
    this.#canvas.width = Math.max(1, Math.round(clientWidth * ratio));
    this.#canvas.height = Math.max(1, Math.round(clientHeight * ratio));
    this.#canvas.style.width = `${clientWidth}px`;
    this.#canvas.style.height = `${clientHeight}px`;
    this.#context.setTransform(ratio, 0, 0, ratio, 0, 0);
    const family = getComputedStyle(this.#canvas).fontFamily;
    const css = `11.5px ${family}`;
    this.#context.font = css;
    this.#font = { css, characterWidth: this.#context.measureText("0".repeat(20)).width / 20 };
    this.#draw();
  }

  #scrolled(): void {
    this.#view.scrollTop = this.#scroller.scrollTop;
    this.#requestFrame();
  }

  #positionUnder(event: MouseEvent): number {
    if (!this.#scene || this.#view.width === 0) {
      return -1;
    }
    const box = this.#canvas.getBoundingClientRect();
    const row = rowAt(this.#scene, this.#view, event.clientY - box.top + this.#view.scrollTop);
    const perPixel = (this.#view.end - this.#view.start) / this.#view.width;
    return positionAt(
      this.#scene.layout,
      row,
      this.#view.start + (event.clientX - box.left) * perPixel,
    );
  }

  #pointed(event: PointerEvent): void {
    this.#hover(
      event.pointerType === "touch" ? -1 : this.#positionUnder(event),
      event.clientX,
      event.clientY,
    );
  }

  #hover(position: number, x: number, y: number): void {
    if (position !== this.#view.hovered) {
      this.#view.hovered = position;
      this.#canvas.style.cursor = position >= 0 ? "pointer" : "default";
      this.#requestFrame();
    }
    this.#events.onHover(position, x, y);
  }

  #clicked(event: MouseEvent): void {
    const position = this.#positionUnder(event);
    this.select(position);
    if (position >= 0) {
      this.focus(position);
    }
  }

  /** Ctrl or pinch zooms at the pointer, sideways scrolling pans; plain scrolling is left to the page. */
  #wheeled(event: WheelEvent): void {
    if (!this.#scene) {
      return;
    }
    const whole = this.#scene.layout.end[0] ?? 0;
    const span = this.#view.end - this.#view.start;
    if (event.ctrlKey || event.metaKey) {
      event.preventDefault();
      const box = this.#canvas.getBoundingClientRect();
      const at = (event.clientX - box.left) / this.#view.width;
      const newSpan = Math.min(whole, Math.max(span * Math.exp(event.deltaY * 0.01), whole * 1e-9));
      const start = Math.min(
        Math.max(0, this.#view.start + (span - newSpan) * at),
        whole - newSpan,
      );
      this.#setView(start, start + newSpan);
    } else if (Math.abs(event.deltaX) > Math.abs(event.deltaY) && span < whole) {
      event.preventDefault();
      const shift = (event.deltaX / this.#view.width) * span;
      const start = Math.min(Math.max(0, this.#view.start + shift), whole - span);
      this.#setView(start, start + span);
    }
  }

  #setView(start: number, end: number): void {
    this.#animation = null;
    this.#view.start = start;
    this.#view.end = end;
    this.#requestFrame();
  }

  #pressed(event: KeyboardEvent): void {
    if (
      !this.#scene ||
      this.#scene.layout.rows === 0 ||
      event.ctrlKey ||
      event.metaKey ||
      event.altKey
    ) {
      return;
    }
    const { layout, rootsBelow } = this.#scene;
    const at = Math.max(this.#view.selected, 0);
    const row = rowOf(layout, at);
    const deeper = rootsBelow ? "ArrowUp" : "ArrowDown";
    const shallower = rootsBelow ? "ArrowDown" : "ArrowUp";
    if (this.#view.selected < 0 && event.key.startsWith("Arrow")) {
      this.select(this.#focused);
    } else if (event.key === deeper) {
      const child = positionAt(layout, row + 1, float64At(layout.start, at));
      if (child >= 0 && layout.parent[child] === at) {
        this.select(child);
      }
    } else if (event.key === shallower) {
      this.select(uint32At(layout.parent, at));
    } else if (event.key === "ArrowLeft") {
      this.select(Math.max(uint32At(layout.rowStart, row), at - 1));
    } else if (event.key === "ArrowRight") {
      this.select(Math.min(uint32At(layout.rowStart, row + 1) - 1, at + 1));
    } else if (event.key === "Enter" || event.key === " ") {
      this.focus(at);
    } else if (event.key === "Escape" || event.key === "Backspace") {
      this.zoomOut();
    } else if (event.key === "Home") {
      this.focus(0);
    } else {
      return;
    }
    event.preventDefault();
  }

  #requestFrame(): void {
    if (this.#frameRequest === 0) {
      this.#frameRequest = requestAnimationFrame(() => this.#draw());
    }
  }

  #draw(): void {
    cancelAnimationFrame(this.#frameRequest);
    this.#frameRequest = 0;
    if (!this.#scene || this.#view.width === 0) {
      return;
    }
    const startedMs = performance.now();
    if (this.#animation) {
      const { from, to } = this.#animation;
      const time = Math.min((startedMs - this.#animation.startedMs) / ZOOM_MS, 1);
      const eased = 1 - (1 - Math.max(time, 0)) ** 3;
      this.#view.start = from[0] + (to[0] - from[0]) * eased;
      this.#view.end = from[1] + (to[1] - from[1]) * eased;
      if (time >= 1) {
        this.#animation = null;
      }
    }
    const rectangles = drawFlame(this.#context, this.#scene, this.#view, this.#font);
    this.#frames++;
    // Read by the tests and the bench: what a frame drew and how long it took.
    this.#canvas.dataset.frames = String(this.#frames);
    this.#canvas.dataset.rectangles = String(rectangles);
    this.#canvas.dataset.drawMs = (performance.now() - startedMs).toFixed(2);
    if (this.#animation) {
      this.#requestFrame();
    }
  }
}
