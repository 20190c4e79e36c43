/** The page of a plan: bars by part, sliders that recompute the plan, and what fits on common GPUs. */
import { useEffect, useMemo, useState } from "react";
import type { PlanJson } from "../../../src/model/documents/plan_document.js";
import { TidemarkError } from "../../../src/model/errors/errors.js";
import { GPUS } from "../../../src/plan/device/gpus.js";
import { fitTable } from "../../../src/plan/fit.js";
import type { PlanOptions } from "../../../src/plan/job/options.js";
import type { PlanPageDocument } from "../../../src/plan/page_document.js";
import { measureFrom, planMemory } from "../../../src/plan/plan.js";
import { formatBytes, formatCount } from "../format/numbers.js";
import { useTheme } from "../theme/theme.js";
import { FitTable } from "./FitTable.js";
import { PartBars } from "./PartBars.js";
import { PlanControls } from "./PlanControls.js";
import { SavingsTable } from "./SavingsTable.js";

export function PlanApp({ page }: { page: PlanPageDocument }) {
  const { model } = page;
  const [theme, toggleTheme] = useTheme();
  const [options, choose] = useState<PlanOptions>(page.options);
  const made = useMemo(() => planOf(model, options), [model, options]);
  const resting = useResting(options);
  const fits = useMemo(() => {
    try {
      return fitTable(model, resting, GPUS, measureFrom);
    } catch {
      return [];
    }
  }, [model, resting]);
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
        {"plan" in made && <Figures plan={made.plan} />}
      </header>
      <main>
        <PlanControls options={options} longest={model.longestSequence} onChoose={choose} />
        {"plan" in made ? (
          <>
            <PartBars plan={made.plan} />
            <SavingsTable plan={made.plan} />
          </>
        ) : (
          <p className="panel empty" role="alert">
            {made.fault}
          </p>
        )}
        <FitTable rows={fits} isTraining={resting.mode === "train"} />
      </main>
      <footer className="foot">Tidemark · computed in this page; nothing is sent anywhere</footer>
    </>
  );
}

/** The table computes several hundred plans, so it is updated when the sliders stop moving. */
const REST_MS = 400;

function useResting<Value>(value: Value): Value {
  const [resting, rest] = useState(value);
  useEffect(() => {
    const timer = setTimeout(() => rest(value), REST_MS);
    return () => clearTimeout(timer);
  }, [value]);
  return resting;
}

function planOf(
  model: PlanPageDocument["model"],
  options: PlanOptions,
): { plan: PlanJson } | { fault: string } {
  try {
    return { plan: planMemory(model, options) };
  } catch (error) {
    if (error instanceof TidemarkError) {
      return { fault: error.message };
    }
    throw error;
  }
}

function billions(parameters: number): string {
  return parameters >= 1e9
    ? `${(parameters / 1e9).toPrecision(3)} billion`
    : `${(parameters / 1e6).toPrecision(3)} million`;
}

function Figures({ plan }: { plan: PlanJson }) {
  const { memory, devices, model } = plan;
  const rows = [
    ["Allocated", memory.allocated, "torch.cuda.max_memory_allocated()"],
    ["Reserved", memory.reserved, "torch.cuda.max_memory_reserved()"],
    ["On the device", memory.device, "nvidia-smi, this process"],
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
          {plan.fits.fits ? "fits" : "does not fit"}
        </dd>
        <dd className="note">
          on {devices.count > 1 ? `${formatCount(devices.count)} x ` : ""}
          {devices.name === "" ? "a GPU" : devices.name}, {formatBytes(devices.memoryBytes)}
        </dd>
      </div>
      <div className="figure">
        <dt>Model</dt>
        <dd className="value">{billions(model.parameters)}</dd>
        <dd className="note">
          parameters, {formatCount(model.layers)} layers, {model.family}
        </dd>
      </div>
    </dl>
  );
}
