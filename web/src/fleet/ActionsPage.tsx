/** What collectors did for services that were short of memory, and what came of it. */
import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { Link } from "wouter";
import type { ActionJson, ActionsJson } from "../../../src/model/documents/action_document.js";
import { actionText } from "../../../src/model/documents/action_text.js";
import { formatBytes, formatWallClock } from "../format/numbers.js";
import { askActions } from "./frame/api.js";
import { Frame, Waiting } from "./frame/Frame.js";
import { useNow } from "./frame/live.js";
import { serviceAddress, useQueryText } from "./frame/timeRange.js";
import type { PageProps } from "./ServicesPage.js";

export function ActionsPage({ theme, toggleTheme }: PageProps) {
  const query = useQuery({
    queryKey: ["actions", useNow()],
    queryFn: askActions,
    placeholderData: keepPreviousData,
  });
  return (
    <Frame path={[["Actions", "/actions"]]} {...{ theme, toggleTheme }}>
      {query.data === undefined ? (
        <Waiting error={query.error} />
      ) : (
        <Actions document={query.data} />
      )}
    </Frame>
  );
}

function Actions({ document: { actions, limits } }: { document: ActionsJson }) {
  const helped = actions.filter((action) => action.helped === true).length;
  return (
    <section className="panel" aria-label="Actions">
      <div className="toolbar">
        <b>Actions</b>
        <span className="note">
          {actions.filter(({ state }) => state === "done").length} done, {helped} helped; at most{" "}
          {limits.service} of a service and {limits.fleet} of all
        </span>
      </div>
      {actions.length === 0 && (
        <p className="empty">
          No collector has acted. The policy of tidemark watch allows actions:{" "}
          <code>{"actions: {mode: dry-run, allow: [gc_collect, malloc_trim]}"}</code>
        </p>
      )}
      {actions.map((action) => (
        <Action key={action.id} action={action} />
      ))}
    </section>
  );
}

function Action({ action }: { action: ActionJson }) {
  const search = useQueryText();
  const { service, version, host, pid, timeMs, state } = action;
  return (
    <article className="fleet-alert" aria-label={`${service}: ${action.what}`}>
      <header>
        <span className={`verdict-mark ${markOf(action)}`}>{state}</span>
        <b>
          <Link href={serviceAddress(service, search)}>{service}</Link>
        </b>
        {version !== "" && <span>version {version}</span>}
        <span className="note">
          {formatWallClock(timeMs, true)}, process {pid} on {host}
        </span>
      </header>
      <p>{actionText(action)}</p>
      <dl>
        {factsOf(action).map(([term, text]) => (
          <div key={term}>
            <dt>{term}</dt>
            <dd>{text}</dd>
          </div>
        ))}
      </dl>
    </article>
  );
}

function markOf({ state, helped }: ActionJson): string {
  return state === "failed"
    ? "verdict-alarm"
    : state === "done" && helped === true
      ? "verdict-calm"
      : "fleet-alert-warning";
}

function factsOf(action: ActionJson): [string, string][] {
  const { reason, evidence, beforeBytes, afterBytes, hourLaterBytes } = action;
  const size = (bytes: number | undefined) => (bytes === undefined ? null : formatBytes(bytes));
  const facts: [string, string | null][] = [
    ["Because", reason],
    ["Before", size(beforeBytes)],
    ["After", size(afterBytes)],
    ["An hour later", size(hourLaterBytes)],
    ["Evidence", evidence === "" ? null : evidence],
  ];
  return facts.flatMap(([term, text]) => (text === null ? [] : [[term, text] as [string, string]]));
}
