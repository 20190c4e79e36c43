/** Header and figures of a heap's page. */
import type { ReactNode } from "react";
import type { Theme } from "../theme/theme.js";

interface HeapHeadProps {
  title: string;
  theme: Theme;
  toggleTheme: () => void;
  limits: readonly string[];
  children: ReactNode;
}

export function HeapHead({ title, theme, toggleTheme, limits, children }: HeapHeadProps) {
  return (
    <header className="head">
      <div className="bar">
        <span className="brand">Tidemark</span>
        <h1 title={title}>{title}</h1>
        <button
          type="button"
          className="icon"
          onClick={toggleTheme}
          aria-label={theme === "dark" ? "Light colours" : "Dark colours"}
        >
          {theme === "dark" ? "☀" : "☾"}
        </button>
      </div>
      <dl className="figures heap-figures">{children}</dl>
      {limits.length > 0 && (
        <ul className="heap-limits">
          {limits.map((limit) => (
            <li key={limit}>{limit}</li>
          ))}
        </ul>
      )}
    </header>
  );
}

export function Figure({ name, value, note }: { name: string; value: string; note: string }) {
  return (
    <div className="figure">
      <dt>{name}</dt>
      <dd className="value">{value}</dd>
      <dd className="note" title={note}>
        {note}
      </dd>
    </div>
  );
}

/** A path from a root; lines break only between steps. */
export function Way({ words }: { words: readonly string[] }) {
  return (
    <code className="heap-way">
      {words.map((word, n) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: the elements of a path never change places
        <span key={n}>
          {n > 0 && <i aria-hidden="true"> → </i>}
          {word}
        </span>
      ))}
    </code>
  );
}
