/** The differences between two versions, between now and earlier, or between an instance and the others. */
import { keepPreviousData, useQuery } from "@tanstack/react-query";
import type {
  FleetDiffJson,
  InstanceRowJson,
} from "../../../../src/model/documents/fleet_document.js";
import type { DiffFigure } from "../../../../src/model/wire/services.js";
import {
  formatBytes,
  formatCount,
  formatSignedBytes,
  formatSignedCount,
  formatWallClock,
} from "../../format/numbers.js";
import { askDiff, type ComparedSide } from "../frame/api.js";
import { Waiting } from "../frame/Frame.js";
import type { Address, TimeRange } from "../frame/timeRange.js";
import { AGO, type Comparison, comparisonIn, sidesOf, versionsOf } from "./comparison.js";
import { othersNote, type StackFigure, StackTable } from "./StackTable.js";

interface CompareViewProps {
  service: string;
  range: TimeRange;
  figure: DiffFigure;
  instances: readonly InstanceRowJson[];
  address: Pick<Address, "get" | "change">;
}

export function CompareView({ service, range, figure, instances, address }: CompareViewProps) {
  const versions = versionsOf(instances);
  const streams = instances.map(({ stream }) => stream);
  const comparison = comparisonIn(address.get, versions, streams);
  const sides = sidesOf(comparison, service, range);
  const query = useQuery({
    queryKey: ["diff", sides, figure],
    // While another comparison loads, the previous one is shown with its own sides.
    queryFn: async () => ({ sides, document: await askDiff(sides, figure) }),
    placeholderData: keepPreviousData,
  });
  return (
    <>
      <Sides {...{ comparison, versions, instances }} change={address.change} />
      {query.data === undefined ? <Waiting error={query.error} /> : <Differences {...query.data} />}
    </>
  );
}

interface SidesProps {
  comparison: Comparison;
  versions: readonly string[];
  instances: readonly InstanceRowJson[];
  change: Address["change"];
}

const AGO_NAMES = { same: "the time before", "1d": "1 day earlier", "7d": "7 days earlier" };

function Sides({ comparison, versions, instances, change }: SidesProps) {
  const kinds = [
    ["versions", "Versions", versions.length > 1],
    ["earlier", "Earlier", true],
    ["instance", "One instance", instances.length > 1],
  ] as const;
  return (
    <div className="toolbar">
      <fieldset className="segments" aria-label="Compare">
        {kinds.map(([kind, label, isPossible]) => (
          <button
            key={kind}
            type="button"
            aria-pressed={kind === comparison.kind}
            disabled={!isPossible}
            onClick={() => change({ with: kind })}
          >
            {label}
          </button>
        ))}
      </fieldset>
      {comparison.kind === "versions" && (
        <>
          <Choice
            label="Version"
            value={comparison.right}
            options={versions.map((name) => [name, name || "no version"])}
            choose={(right) => change({ right })}
          />
          <Choice
            label="compared with"
            value={comparison.left}
            options={versions.map((name) => [name, name || "no version"])}
            choose={(left) => change({ left })}
          />
        </>
      )}
      {comparison.kind === "earlier" && (
        <Choice
          label="This time compared with"
          value={comparison.ago}
          options={AGO.map((ago) => [ago, AGO_NAMES[ago]])}
          choose={(ago) => change({ ago })}
        />
      )}
      {comparison.kind === "instance" && (
        <Choice
          label="Compared with all others:"
          value={comparison.of}
          options={instances.map(({ stream, pod, host, version }) => [
            stream,
            [stream.slice(0, 8), pod || host, version].filter(Boolean).join(" · "),
          ])}
          choose={(of) => change({ of })}
        />
      )}
    </div>
  );
}

interface ChoiceProps {
  label: string;
  value: string;
  options: readonly (readonly [value: string, name: string])[];
  choose: (value: string) => void;
}

function Choice({ label, value, options, choose }: ChoiceProps) {
  return (
    <label className="select">
      {label}
      <select value={value} onChange={(event) => choose(event.target.value)}>
        {options.map(([id, name]) => (
          <option key={id} value={id}>
            {name}
          </option>
        ))}
      </select>
    </label>
  );
}

interface DifferencesProps {
  document: FleetDiffJson;
  sides: readonly [ComparedSide, ComparedSide];
}

function Differences({ document, sides: [left, right] }: DifferencesProps) {
  const { stacks, other, limits, figure } = document;
  const isBytes = figure.endsWith("Bytes");
  const amount = (value: number) => (isBytes ? formatBytes(value) : formatCount(Math.round(value)));
  const change = (value: number) =>
    isBytes ? formatSignedBytes(value) : formatSignedCount(Math.round(value));
  const total = document.right.total - document.left.total;
  const figures: StackFigure<FleetDiffJson["stacks"][number]>[] = [
    {
      id: "change",
      name: "Change",
      title: "The right side less the left side; a mean for each instance",
      of: (row) => row.change,
      text: (row) => change(row.change),
    },
    {
      id: "left",
      name: left.name,
      wide: true,
      of: (row) => row.left,
      text: (row) => amount(row.left),
    },
    {
      id: "right",
      name: right.name,
      wide: true,
      of: (row) => row.right,
      text: (row) => amount(row.right),
    },
  ];
  return (
    <>
      <p className="fleet-sentence">
        <b>{change(total)}</b> for each instance: {amount(document.right.total)} in{" "}
        <SideName side={right} count={document.right.instances} />, {amount(document.left.total)} in{" "}
        <SideName side={left} count={document.left.instances} />.
      </p>
      <StackTable
        name="Differences"
        rows={stacks}
        figures={figures}
        sortedBy="change"
        empty="Neither side has a profile in its time."
        notes={[...othersNote(other.stacks, change(other.change)), ...limits]}
      />
    </>
  );
}

function SideName({ side, count }: { side: ComparedSide; count: number }) {
  const { startMs, endMs } = side.range;
  const mean = Math.round(count * 10) / 10;
  return (
    <span title={`${formatWallClock(startMs, true)} to ${formatWallClock(endMs, true)}`}>
      {side.name} ({mean} {mean === 1 ? "instance" : "instances"})
    </span>
  );
}
