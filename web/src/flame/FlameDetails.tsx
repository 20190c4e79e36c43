/** The selection in the flame graph: its source location and all its figures. */

import { useMemo, useState } from "react";
import { addAt, float64At, uint8At, uint32At } from "../../../src/model/base/columns.js";
import type { ReportDocument } from "../../../src/model/documents/report_document.js";
import { hasErrors, type ImportedFigure, isUnknown } from "../../../src/model/profile/imported.js";
import type { ProfileSnapshot } from "../../../src/model/profile/profile.js";
import { type Choices, isObjects } from "../choices/choices.js";
import { formatBytes, formatCount, formatShare, formatSignedBytes } from "../format/numbers.js";
import { type FrameWords, frameWords } from "../frames/frameNames.js";
import { readSetting, writeSetting } from "../theme/theme.js";
import type { FlameGraph } from "./flameGraph.js";

const DEFAULT_LINK = "vscode://file{file}:{line}";

interface FlameDetailsProps {
  report: ReportDocument;
  snapshot: ProfileSnapshot;
  rows: Uint32Array;
  flame: FlameGraph;
  position: number;
  choices: Choices;
  zoom: () => void;
  close: () => void;
}

export function FlameDetails(props: FlameDetailsProps) {
  if (props.position < 0) {
    return (
      <aside className="details details-empty" id="flame-selected" aria-live="polite">
        <p>Select a rectangle to see its source line, its figures and who calls it.</p>
      </aside>
    );
  }
  return <Selected {...props} />;
}

function Selected({
  report,
  snapshot,
  rows,
  flame,
  position,
  choices,
  zoom,
  close,
}: FlameDetailsProps) {
  const { graph, layout, total, own, totalBefore, variance } = flame;
  const node = uint32At(layout.node, position);
  const words = position === 0 ? null : frameWords(report.tables, uint32At(graph.frame, node));
  const totals = useMemo(
    () => sumsUnder(flame, snapshot, rows, node),
    [flame, snapshot, rows, node],
  );
  const whole = total[0] || 1;
  const measure = (amount: number) =>
    isObjects(choices.value) ? formatCount(amount) : formatBytes(amount);
  const before = totalBefore?.[node];
  const { imported } = report.summary;
  const known = (figure: ImportedFigure, text: string) =>
    isUnknown(imported, figure) ? "unknown" : text;

  return (
    <aside className="details" id="flame-selected" aria-live="polite">
      <div className="details-head">
        <h3>{words?.function ?? "Everything"}</h3>
        <button type="button" className="icon" onClick={close} aria-label="Close details">
          ×
        </button>
      </div>
      {words && <Source words={words} />}
      <p className="details-main">
        <b data-testid="selected-value">{measure(float64At(total, node))}</b>
        {variance && hasErrors(imported) && (
          <span> ± {formatBytes(Math.sqrt(float64At(variance, node)))}</span>
        )}
        <span className="share">{formatShare(float64At(total, node) / whole)}</span>
      </p>
      {before !== undefined && (
        <p className="details-change">
          {measure(before)} → {measure(float64At(total, node))},{" "}
          <b>
            {isObjects(choices.value)
              ? formatCount(float64At(total, node) - before)
              : formatSignedBytes(float64At(total, node) - before)}
          </b>
        </p>
      )}
      <table className="plain">
        <tbody>
          <Row
            name={choices.reversed ? "ends here" : "itself"}
            value={measure(float64At(own, node))}
          />
          <Row name="live" value={known("live", formatBytes(totals.liveBytes))} />
          <Row name="at peak" value={known("peak", formatBytes(totals.peakBytes))} />
          <Row name="allocated" value={known("allocated", formatBytes(totals.allocatedBytes))} />
          <Row name="live objects" value={known("objects", formatCount(totals.liveObjects))} />
        </tbody>
      </table>
      {!isUnknown(imported, "python") && <DomainSplit parts={totals.byDomain} />}
      {position > 0 && (
        <button type="button" className="button" onClick={zoom}>
          Zoom to it
        </button>
      )}
    </aside>
  );
}

function Row({ name, value }: { name: string; value: string }) {
  return (
    <tr>
      <th scope="row">{name}</th>
      <td>{value}</td>
    </tr>
  );
}

/** file:line to copy, and a link that opens an editor; the reader may change the link template. */
function Source({ words }: { words: FrameWords }) {
  const [template, setTemplate] = useState(() => readSetting("link") ?? DEFAULT_LINK);
  const [copied, setCopied] = useState(false);
  if (words.file === "") {
    return <p className="place">{words.kind === "mark" ? "frames left out" : "source unknown"}</p>;
  }
  const text = words.line > 0 ? `${words.file}:${words.line}` : words.file;
  const link =
    words.kind === "python" && words.file.startsWith("/") ? linkTo(template, words) : null;
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(text);
      setCopied(true);
      setTimeout(() => setCopied(false), 1500);
    } catch {
      // Without clipboard permission the text can still be selected and copied by hand.
    }
  };
  return (
    <div className="source">
      <code data-testid="source">{text}</code>
      <div className="source-actions">
        <button type="button" className="quiet" onClick={copy}>
          {copied ? "Copied" : "Copy"}
        </button>
        {link && (
          <a className="quiet" href={link} data-testid="source-link">
            Open in editor
          </a>
        )}
        {link && (
          <details className="link-template">
            <summary>Link</summary>
            <input
              aria-label="Link template with {file} and {line}"
              value={template}
              spellCheck={false}
              onChange={(event) => {
                setTemplate(event.target.value);
                writeSetting("link", event.target.value);
              }}
            />
          </details>
        )}
      </div>
    </div>
  );
}

/** The link to a source location; null if the template would run script. */
function linkTo(
  template: string,
  { file, line }: Pick<FrameWords, "file" | "line">,
): string | null {
  const link = template
    .replaceAll("{file}", encodeURI(file))
    .replaceAll("{line}", String(Math.max(line, 1)));
  return /^\s*(javascript|data|vbscript):/i.test(link) ? null : link;
}

const DOMAIN_NAMES = ["python", "native", "mapped"] as const;

function DomainSplit({ parts }: { parts: Float64Array }) {
  const sum = parts.reduce((a, b) => a + b, 0);
  const shares = DOMAIN_NAMES.map((name, domain) => [name, (parts[domain] ?? 0) / sum] as const);
  if (!(sum > 0)) {
    return null;
  }
  return (
    <>
      <div className="split" aria-hidden="true">
        {shares.map(([name, share]) => (
          <i key={name} className={`dot-${name}`} style={{ width: `${share * 100}%` }} />
        ))}
      </div>
      <p className="split-words">
        {shares
          .filter(([, share]) => share > 0)
          .map(([name, share]) => `${name} ${formatShare(share)}`)
          .join(" · ")}
      </p>
    </>
  );
}

/** All figures of a node including its callees, and its live bytes by allocator. */
function sumsUnder(
  { graph }: FlameGraph,
  snapshot: ProfileSnapshot,
  rows: Uint32Array,
  top: number,
) {
  const inside = new Uint8Array(graph.length);
  inside[top] = 1;
  for (let node = top + 1; node < graph.length; node++) {
    inside[node] = uint8At(inside, node) | uint8At(inside, uint32At(graph.parent, node));
  }
  const { sites } = snapshot;
  const sums = {
    liveBytes: 0,
    peakBytes: 0,
    allocatedBytes: 0,
    liveObjects: 0,
    byDomain: new Float64Array(DOMAIN_NAMES.length),
  };
  for (const row of rows) {
    if (inside[uint32At(graph.nodeOfStack, uint32At(sites.stack, row))] === 0) {
      continue;
    }
    sums.liveBytes += float64At(sites.liveBytes, row);
    sums.peakBytes += float64At(sites.peakBytes, row);
    sums.allocatedBytes += float64At(sites.allocatedBytes, row);
    sums.liveObjects += float64At(sites.liveObjects, row);
    addAt(sums.byDomain, uint8At(sites.domain, row), float64At(sites.liveBytes, row));
  }
  return sums;
}
