/** Sliders and choices of a plan. */
import type { PlanRequest } from "../../../src/plan/defaults.js";
import { GPUS } from "../../../src/plan/device/gpus.js";
import { BLOCK_CACHE_TYPES } from "../../../src/plan/job/cache_types.js";
import { OPTIMIZERS, type OptimizerName } from "../../../src/plan/job/optimizers.js";
import {
  ENGINES,
  type Engine,
  METHODS,
  type Method,
  type PlanOptions,
  type ServeOptions,
  type TrainOptions,
} from "../../../src/plan/job/options.js";
import { formatCount } from "../format/numbers.js";

const PADDED = "padded batches";

interface ControlsProps {
  options: PlanOptions;
  /** null: the model reads no text. 0: not known. */
  longest: number | null;
  /** Called with the options that change. */
  onChoose: (changes: Changes) => void;
  /** Another engine: some options of the one before do not belong to it. */
  onEngine: (engine: Engine) => void;
}

type Changes = Omit<PlanRequest, "mode">;

export function PlanControls({ options, longest, onChoose, onEngine }: ControlsProps) {
  return (
    <section className="panel plan-controls" aria-label="Options">
      {options.mode === "train" ? (
        <TrainControls options={options} longest={longest} onChoose={onChoose} />
      ) : (
        <>
          <Choice
            name="Engine"
            value={options.engine}
            values={ENGINES}
            onChoose={(engine) => onEngine(engine as Engine)}
          />
          <ServeControls options={options} longest={longest} onChoose={onChoose} />
        </>
      )}
      {readsPadding(options, longest) && (
        <Choice
          name="Padding"
          value={options.padded ? PADDED : "one length"}
          values={[PADDED, "one length"]}
          onChoose={(value) => onChoose({ padded: value === PADDED })}
        />
      )}
      <Choice
        name="GPU"
        value={options.gpu.name}
        values={[...new Set([options.gpu.name, ...GPUS.map(({ name }) => name)])]}
        onChoose={(name) => onChoose({ gpu: GPUS.find((gpu) => gpu.name === name) ?? options.gpu })}
      />
    </section>
  );
}

/** Text alone has lengths, and engines other than transformers have kernels that need no mask. */
function readsPadding(options: PlanOptions, longest: number | null): boolean {
  return longest !== null && (options.mode === "train" || options.engine === "transformers");
}

interface ModeProps<Options> {
  options: Options;
  longest: number | null;
  onChoose: (changes: Changes) => void;
}

const LONGEST = 2 ** 17;

function TrainControls({ options, longest, onChoose }: ModeProps<TrainOptions>) {
  const { sharding } = options.parallelism;
  const change = (train: Partial<TrainOptions>) => onChoose({ train });
  return (
    <>
      <Slider
        name="Batch"
        value={options.batch}
        most={256}
        onChoose={(batch) => change({ batch })}
      />
      {longest !== null && (
        <Slider
          name="Sequence length"
          value={options.sequence}
          most={longest === 0 ? LONGEST : Math.min(LONGEST, longest)}
          onChoose={(sequence) => change({ sequence })}
        />
      )}
      <Slider
        name="FSDP devices"
        value={sharding.devices}
        most={1024}
        onChoose={(devices) =>
          onChoose({
            sharding: {
              devices,
              kind: devices > 1 && sharding.kind === "ddp" ? "fsdp" : sharding.kind,
            },
          })
        }
      />
      <Choice
        name="Method"
        value={options.method}
        values={METHODS}
        onChoose={(method) => onChoose({ method: method as Method })}
      />
      <Choice
        name="Checkpointing"
        value={options.checkpointing}
        values={["none", "selective", "full"]}
        onChoose={(value) => change({ checkpointing: value as TrainOptions["checkpointing"] })}
      />
      <Choice
        name="Optimizer"
        value={options.optimizer}
        values={OPTIMIZERS}
        onChoose={(value) => change({ optimizer: value as OptimizerName })}
      />
      <Choice
        name="Attention"
        value={options.attention}
        values={["eager", "sdpa", "flash"]}
        onChoose={(value) => onChoose({ attention: value as TrainOptions["attention"] })}
      />
      <Choice
        name="Loss"
        value={options.loss}
        values={["full", "chunked", "fused"]}
        onChoose={(value) => change({ loss: value as TrainOptions["loss"] })}
      />
    </>
  );
}

function ServeControls({ options, longest, onChoose }: ModeProps<ServeOptions>) {
  const change = (serve: Partial<ServeOptions>) => onChoose({ serve });
  return (
    <>
      <Slider
        name="Sequences at once"
        value={options.concurrency}
        most={1024}
        onChoose={(concurrency) => change({ concurrency })}
      />
      <Slider
        name="Context"
        value={options.context}
        most={longest === 0 || longest === null ? LONGEST : Math.max(1, longest)}
        onChoose={(context) => change({ context })}
      />
      <Slider
        name="Tensor parallelism"
        value={options.tensor}
        most={16}
        onChoose={(tensor) => onChoose({ tensor })}
      />
      <Choice
        name="Cache"
        value={options.kvDType}
        values={[
          "auto",
          "fp16",
          "bf16",
          "fp32",
          ...(options.engine === "llama.cpp" ? BLOCK_CACHE_TYPES : ["fp8"]),
        ]}
        onChoose={(value) => {
          const type = value as ServeOptions["kvDType"];
          change({ kvDType: type, valueDType: type });
        }}
      />
    </>
  );
}

/** Powers of two, plus the current value if it is not one. */
function Slider({
  name,
  value,
  most,
  onChoose,
}: {
  name: string;
  value: number;
  most: number;
  onChoose: (value: number) => void;
}) {
  const steps = Array.from(
    { length: Math.floor(Math.log2(Math.max(1, most))) + 1 },
    (_, n) => 2 ** n,
  );
  const stops = [...new Set([...steps, value])].sort((a, b) => a - b);
  return (
    <label className="plan-slider">
      <span>{name}</span>
      <input
        type="range"
        min={0}
        max={stops.length - 1}
        value={stops.indexOf(value)}
        aria-label={name}
        aria-valuetext={String(value)}
        onChange={(event) => onChoose(stops[Number(event.target.value)] ?? value)}
      />
      <output>{formatCount(value)}</output>
    </label>
  );
}

function Choice({
  name,
  value,
  values,
  onChoose,
}: {
  name: string;
  value: string;
  values: readonly string[];
  onChoose: (value: string) => void;
}) {
  return (
    <label className="plan-choice">
      <span>{name}</span>
      <select value={value} aria-label={name} onChange={(event) => onChoose(event.target.value)}>
        {values.map((each) => (
          <option key={each} value={each}>
            {each === "" ? "as given" : each}
          </option>
        ))}
      </select>
    </label>
  );
}
