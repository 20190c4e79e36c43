/** The frame of every page: path, range of time, colours; and what is shown instead of a page. */
import { type FormEvent, type ReactNode, useRef, useState } from "react";
import { Link } from "wouter";
import { partialSentence } from "../../../../src/model/wire/partial.js";
import { formatWallClock } from "../../format/numbers.js";
import type { Theme } from "../../theme/theme.js";
import { NotFound, setToken, TokenNeeded } from "./api.js";
import { usePartial } from "./partial.js";
import { type ChosenRange, SPANS, useQueryText, withRange } from "./timeRange.js";

interface FrameProps {
  /** The breadcrumb: the parts of the path to this page, each with its address. */
  path: readonly (readonly [name: string, address: string])[];
  theme: Theme;
  toggleTheme: () => void;
  /** Absent if the page has none. */
  chosen?: ChosenRange & { change: (values: Record<string, string | null>) => void };
  children: ReactNode;
}

export function Frame({ path, theme, toggleTheme, chosen, children }: FrameProps) {
  const partial = usePartial();
  return (
    <>
      <header className="head fleet-head">
        <div className="bar">
          <Link href="/" className="brand">
            Tidemark
          </Link>
          <nav aria-label="Path" className="fleet-path">
            {path.map(([name, address]) => (
              <Link key={address} href={address}>
                {name}
              </Link>
            ))}
          </nav>
          <Elsewhere path={path} />
          {chosen && <Spans {...chosen} />}
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
      <main>
        {partial !== null && (
          <p className="fleet-partial" role="alert">
            Partial: {partialSentence(partial)}.
          </p>
        )}
        {children}
      </main>
    </>
  );
}

const PAGES = [
  ["Services", "/"],
  ["Verdicts", "/verdicts"],
  ["Alerts", "/alerts"],
  ["Sizes", "/sizes"],
  ["Actions", "/actions"],
  ["Artifacts", "/artifacts"],
  ["Ingest", "/ingest"],
] as const;

/** The pages that the path does not begin with; they keep the chosen time. */
function Elsewhere({ path }: Pick<FrameProps, "path">) {
  const search = useQueryText();
  return (
    <nav aria-label="Pages" className="fleet-pages">
      {PAGES.filter(([name]) => name !== path[0]?.[0]).map(([name, address]) => (
        <Link key={name} href={withRange(address, search)}>
          {name}
        </Link>
      ))}
    </nav>
  );
}

function Spans({ span, range, change }: NonNullable<FrameProps["chosen"]>) {
  return (
    <div className="fleet-spans">
      {span === null && (
        <span className="note">
          {formatWallClock(range.startMs, true)} – {formatWallClock(range.endMs, true)}
        </span>
      )}
      <fieldset className="segments" aria-label="Range of time">
        {SPANS.map(([name]) => (
          <button
            key={name}
            type="button"
            aria-pressed={name === span}
            onClick={() => change({ since: name, from: null, to: null })}
          >
            {name}
          </button>
        ))}
      </fieldset>
    </div>
  );
}

/** Shown in place of a page that is still loading or cannot be shown. An error stays while the page is requested again. */
export function Waiting({ error: newest }: { error: Error | null }) {
  const last = useRef(newest);
  last.current = newest ?? last.current;
  const error = last.current;
  if (error instanceof TokenNeeded) {
    return <TokenForm line={error.message} />;
  }
  return error === null ? (
    <p className="empty">Asking the server…</p>
  ) : (
    <p className="empty" role="alert">
      {error instanceof NotFound ? (
        <>
          There is nothing here: {error.message}. <Link href="/">All services</Link>
        </>
      ) : (
        error.message
      )}
    </p>
  );
}

function TokenForm({ line }: { line: string }) {
  const [text, setText] = useState("");
  const submit = (event: FormEvent) => {
    event.preventDefault();
    setToken(text.trim());
    location.reload();
  };
  return (
    <form className="panel fleet-token" onSubmit={submit}>
      <label>
        {line}
        <input
          type="password"
          autoComplete="off"
          value={text}
          onChange={(event) => setText(event.target.value)}
        />
      </label>
      <button type="submit" className="toggle" disabled={text.trim() === ""}>
        Use it
      </button>
    </form>
  );
}
