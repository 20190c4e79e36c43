/** The page of a plan: bars by part, sliders that recompute the plan, and what fits on common GPUs. */
import { useEffect, useMemo, useState } from "react";
import type { PlanFitJson, PlanJson } from "../../../src/model/documents/plan_document.js";
import { TidemarkError } from "../../../src/model/errors/errors.js";
import { type PlanRequest, planOptions, withJobConfig } from "../../../src/plan/defaults.js";
import { GPUS } from "../../../src/plan/device/gpus.js";
import { withEngine } from "../../../src/plan/engine_change.js";
import { fitTable } from "../../../src/plan/fit.js";
import { longestFor } from "../../../src/plan/job/longest.js";
import type { PlanOptions } from "../../../src/plan/job/options.js";
import type { PlanPageDocument } from "../../../src/plan/page_document.js";
import { planMemory } from "../../../src/plan/plan.js";
import { readsText } from "../../../src/plan/shape/layers.js";
import {
  cacheWords,
  fitText,
  largeCount,
  layerWords,
  measuredAs,
  mostOf,
  roomWords,
} from "../../../src/plan/wording.js";
import { formatBytes, formatCount, formatExactCount } from "../format/numbers.js";
import { useTheme } from "../theme/theme.js";
import { Comparison } from "./Comparison.js";
import { FitTable } from "./FitTable.js";
import { PartBars } from "./PartBars.js";
import { PlanControls } from "./PlanControls.js";
import { SavingsTable } from "./SavingsTable.js";

export function PlanApp({ page }: { page: PlanPageDocument }) {
  const { model } = page;
  const [theme, toggleTheme] = useTheme();
  const [request, choose] = useState(page.request);
  const made = useMemo(() => planOf(model, request), [model, request]);
  const fits = useFits(model, useResting(request));
  return (
    <>
      <header className="head">
        <div className="bar">
          <span className="brand">Tidemark</span>
          <h1 title={page.title}>{page.title}</h1>
          <button
            type="button"
            className="icon"
            onClick={toggleTheme}
            aria-label={theme === "dark" ? "Light colours" : "Dark colours"}
          >
            {theme === "dark" ? "☀" : "☾"}
          </button>
        </div>
        {made.plan !== undefined && <Figures plan={made.plan} />}
      </header>
      <main>
        {made.options !== undefined && (
          <PlanControls
            options={made.options}
            longest={readsText(model) ? longestFor(model, made.options) : null}
            onEngine={(engine) => choose(withEngine(model, request, engine))}
            onChoose={(changes) =>
              choose(withJobConfig({ ...changes, mode: request.mode }, request))
            }
          />
        )}
        {made.plan !== undefined ? (
          <>
            <Notes plan={made.plan} />
            {page.comparison !== undefined && <Comparison comparison={page.comparison} />}
            <PartBars plan={made.plan} />
            <SavingsTable plan={made.plan} />
          </>
        ) : (
          <p className="panel empty" role="alert">
            {made.fault}
          </p>
        )}
        <FitTable
          rows={fits}
          isTraining={request.mode === "train"}
          readsText={readsText(model)}
          longest={model.longestSequence}
        />
      </main>
      <footer className="foot">Tidemark · computed in this page; nothing is sent anywhere</footer>
    </>
  );
}

/** The table takes several hundred plans, so it is updated when the sliders stop moving. */
const REST_MS = 400;

function useResting<Value>(value: Value): Value {
  const [resting, rest] = useState(value);
  useEffect(() => {
    const timer = setTimeout(() => rest(value), REST_MS);
    return () => clearTimeout(timer);
  }, [value]);
  return resting;
}

/** Rows of one device after the other, so that the page stays responsive. */
function useFits(model: PlanPageDocument["model"], request: PlanRequest): readonly PlanFitJson[] {
  const [rows, show] = useState<readonly PlanFitJson[]>([]);
  useEffect(() => {
    let found: readonly PlanFitJson[] = [];
    let timer = 0;
    const shared = new Map();
    const next = (index: number): void => {
      timer = window.setTimeout(() => {
        found = [...found, ...fitTable(model, request, GPUS.slice(index, index + 1), shared)];
        show(found);
        if (index + 1 < GPUS.length) {
          next(index + 1);
        }
      });
    };
    next(0);
    return () => clearTimeout(timer);
  }, [model, request]);
  return rows;
}

interface Made {
  readonly options?: PlanOptions;
  readonly plan?: PlanJson;
  readonly fault?: string;
}

/** Options without a plan: the controls stay, so that what no library runs can be changed back. */
function planOf(model: PlanPageDocument["model"], request: PlanRequest): Made {
  let options: PlanOptions | undefined;
  try {
    options = planOptions(model, request);
    return { options, plan: planMemory(model, request) };
  } catch (error) {
    if (error instanceof TidemarkError) {
      return { ...(options === undefined ? {} : { options }), fault: error.message };
    }
    throw error;
  }
}

/** What the command line prints below the figures: cautions, the cache, the assumptions. */
function Notes({
  plan: { limits, assumptions, serving, fits, mode, host, model },
}: {
  plan: PlanJson;
}) {
  return (
    <section className="panel plan-notes" aria-label="Notes">
      {limits.map((limit) => (
        <p key={limit} className="plan-caution">
          {limit}
        </p>
      ))}
      <p>
        Largest {mode === "train" ? "batch" : "number of sequences"}
        {model.readsText ? " at this length" : ""}: <b>{mostOf(fits.maxBatch)}</b>
        {model.readsText && (
          <>
            ; longest length {mode === "train" ? "at this batch" : "at this number of sequences"}:{" "}
            <b>{mostOf(fits.maxSequence, model.longestSequence)}</b> tokens
          </>
        )}
        {fits.reason !== undefined && `; does not fit, because ${fits.reason}`}
        {fits.beyond !== undefined && `; ${fits.beyond}`}
      </p>
      {serving !== undefined && cacheWords(serving) !== null && (
        <p>
          Cache: {cacheWords(serving)}
          {serving.kvTokens > 0 && serving.kvBytesPerToken > 0 && serving.windows === undefined ? (
            <>
              , room for <b>{formatExactCount(serving.kvTokens)}</b> tokens
            </>
          ) : (
            `; ${roomWords(serving, model)}`
          )}
        </p>
      )}
      <p>Assumed: {assumptions.join("; ")}</p>
      {host.length > 0 && (
        <p>
          Host memory of each process:{" "}
          {host.map(({ part, bytes }) => `${part} ${formatBytes(bytes)}`).join(", ")}
        </p>
      )}
    </section>
  );
}

function Figures({ plan }: { plan: PlanJson }) {
  const { memory, devices, model } = plan;
  const notes = measuredAs(plan);
  const rows = [
    ["Allocated", memory.allocated, notes.allocated],
    ["Reserved", memory.reserved, notes.reserved],
    ["On the device", memory.device, notes.device],
  ] as const;
  return (
    <dl className="figures">
      {rows.map(([name, figure, note]) => (
        <div className="figure" key={name}>
          <dt>{name}</dt>
          <dd className="value">{formatBytes(figure.bytes)}</dd>
          <dd className="note" title={note}>
            {formatBytes(figure.low)} to {formatBytes(figure.high)}
          </dd>
        </div>
      ))}
      <div className="figure">
        <dt>Verdict</dt>
        <dd className="value" id="plan-verdict">
          {fitText(plan)}
        </dd>
        <dd className="note">
          on {devices.count > 1 ? `${formatCount(devices.count)} x ` : ""}
          {devices.name === "" ? "a GPU" : devices.name}, {formatBytes(devices.memoryBytes)}
        </dd>
      </div>
      <div className="figure">
        <dt>Model</dt>
        <dd className="value">{largeCount(model.parameters)}</dd>
        <dd className="note">
          parameters, {layerWords(model)}, {model.family}
        </dd>
      </div>
    </dl>
  );
}
