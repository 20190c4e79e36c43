/** Header of a snapshot's page. */
import type { ReactNode } from "react";
import type { Theme } from "../theme/theme.js";

interface Props {
  title: string;
  theme: Theme;
  toggleTheme: () => void;
  /** The device selector, if there are several devices. */
  children?: ReactNode;
}

export function GpuHead({ title, theme, toggleTheme, children }: Props) {
  return (
    <header className="head">
      <div className="bar">
        <span className="brand">Tidemark</span>
        <h1 title={title}>{title}</h1>
        {children}
        <button
          type="button"
          className="icon"
          onClick={toggleTheme}
          aria-label={theme === "dark" ? "Light colours" : "Dark colours"}
        >
          {theme === "dark" ? "☀" : "☾"}
        </button>
      </div>
    </header>
  );
}

/** @param devices their numbers @param shown row of the visible one */
export function DeviceChoice({
  devices,
  shown,
  choose,
}: {
  devices: readonly number[];
  shown: number;
  choose: (row: number) => void;
}) {
  if (devices.length < 2) {
    return null;
  }
  return (
    <label className="select">
      Device
      <select value={shown} onChange={(event) => choose(Number(event.target.value))}>
        {devices.map((device, row) => (
          <option key={device} value={row}>
            {device < 0 ? "pinned host memory" : device}
          </option>
        ))}
      </select>
    </label>
  );
}
