/** The devices of a running program. */

import {
  formatBytes,
  formatCount,
  formatMilliseconds,
  formatShare,
  formatSignedBytes,
} from "../../../model/base/numbers.js";
import type {
  GpuProcessDeviceJson,
  GpuProcessJson,
  GpuTensorJson,
} from "../../../model/documents/gpu/gpu_process_document.js";
import { oneLine } from "../../../model/errors/errors.js";
import { HOST_MEMORY } from "../../../model/gpu/gpu_snapshot.js";
import { type ListOptions, selectRows } from "../../options/options.js";
import { bar, formatTable, padStart, type Screen } from "../../text/output.js";
import { printFragmentation, printLimits } from "./snapshot.js";

export const DEFAULT_TENSORS = 10;
type Options = ListOptions & { readonly quiet?: boolean };
const BAR_WIDTH = 30;

export function printGpuProcess(screen: Screen, document: GpuProcessJson, options: Options): void {
  const { paint } = screen;
  const { target } = document;
  const pause = document.pauseMs > 0 ? `, paused for ${formatMilliseconds(document.pauseMs)}` : "";
  screen.line(
    `${paint.bold(`process ${target.pid}`)}  ${paint.dim(
      `RSS ${formatBytes(document.rssBytes)}${pause}; ${oneLine(target.command.join(" "))}`,
    )}`,
  );
  for (const device of document.devices) {
    printDevice(screen, device);
  }
  printPinned(screen, document);
  printTensors(screen, document, options);
  printPools(screen, document);
  printGrowth(screen, document);
  printLimits(screen, document.limits, options);
}

/** The text that `--filter` searches. */
export function tensorText({ type, dtype, path }: GpuTensorJson): string {
  return `${type} ${dtype} ${path.join(" ")}`;
}

function printDevice(screen: Screen, device: GpuProcessDeviceJson): void {
  const { paint } = screen;
  screen.line();
  screen.line(
    `${paint.bold(device.device === HOST_MEMORY ? "Host memory" : `Device ${device.device}`)}  ${paint.dim(`${device.name}, ${device.framework}`)}`,
  );
  const rows: [name: string, bytes: number | null, note: string][] = [
    ["Device", device.totalBytes, withBytes(device.freeBytes, "free")],
    ["Others", device.othersBytes, "other processes, the context, NCCL and other libraries"],
    ["Reserved", device.reservedBytes, withBytes(device.peakReservedBytes, "at the peak")],
    ["Allocated", device.allocatedBytes, withBytes(device.peakAllocatedBytes, "at the peak")],
    ["Active", device.activeBytes, ""],
    ["Requested", device.requestedBytes, ""],
    ["Split", device.splitBytes, withCount(device.inactiveSplitBlocks, "inactive split blocks")],
    ["Cached", device.cachedBytes, "released before an error is raised"],
    ["Largest free", device.largestFreeBytes, ""],
  ];
  for (const [name, bytes, note] of rows) {
    if (bytes !== null) {
      const share = device.totalBytes ? bar(bytes / device.totalBytes, BAR_WIDTH) : "";
      screen.line(
        `  ${name.padEnd(13)}${paint.bold(padStart(formatBytes(bytes), 10))}  ${paint.cyan(share)} ${paint.dim(note)}`,
      );
    }
  }
  const facts = [
    device.fragmentationRatio === null
      ? ""
      : `split ${formatShare(device.fragmentationRatio)} of the reserved memory`,
    withCount(device.allocationRetries, "allocation retries"),
    withCount(device.outOfMemory, "out-of-memory errors"),
  ].filter((fact) => fact !== "");
  if (facts.length > 0) {
    screen.line(`  ${facts.join(", ")}`);
  }
  printFragmentation(screen, device);
}

function withBytes(bytes: number | null, words: string): string {
  return bytes === null ? "" : `${formatBytes(bytes)} ${words}`;
}

function withCount(count: number | null, words: string): string {
  return count === null ? "" : `${formatCount(count)} ${words}`;
}

function printPinned(screen: Screen, { pinned }: GpuProcessJson): void {
  if (pinned?.ownedBytes) {
    screen.line();
    screen.line(
      `${screen.paint.bold("Pinned host memory")}  ${formatBytes(pinned.ownedBytes)}${
        pinned.activeBytes === null ? "" : `, ${formatBytes(pinned.activeBytes)} in use`
      }`,
    );
  }
}

function printTensors(screen: Screen, document: GpuProcessJson, options: Options): void {
  const { paint } = screen;
  const { tensors, unheldBytes } = document;
  if (tensors === null || (tensors.length === 0 && !unheldBytes)) {
    return;
  }
  const { rows, leftOut, unmatched } = selectRows(
    tensors,
    options,
    DEFAULT_TENSORS,
    ({ bytes }) => bytes,
    tensorText,
  );
  screen.line();
  screen.line(
    `${paint.bold("Largest tensors")}  ${paint.dim("over 10 MB, each storage counted once, from the object graph")}`,
  );
  const table = formatTable(
    screen,
    [
      { title: "BYTES", align: "right", paint: paint.bold },
      { title: "SHAPE" },
      { title: "TYPE" },
      { title: "VIEWS", align: "right" },
      { title: "HELD BY", flexible: "cutMiddle" },
    ],
    rows.map((tensor) => [
      formatBytes(tensor.bytes),
      tensor.dtype === "" ? "" : `[${tensor.shape.join(", ")}]`,
      tensor.dtype,
      formatCount(tensor.views),
      tensor.path.join(" → "),
    ]),
  );
  for (const line of rows.length === 0 ? [] : table) {
    screen.line(line);
  }
  if (unmatched !== undefined) {
    screen.line(paint.dim(`  ${unmatched}`));
  }
  if (leftOut > 0) {
    screen.line(paint.dim(`  ${formatCount(leftOut)} more`));
  }
  if (unheldBytes !== null && unheldBytes > 0) {
    screen.line(
      paint.dim(
        `  ${formatBytes(unheldBytes)} in large blocks that no Python tensor refers to: autograd graphs, libraries`,
      ),
    );
  }
}

function printPools(screen: Screen, { kvPools }: GpuProcessJson): void {
  for (const { occupancy, blocks, freeBlocks, path } of kvPools) {
    screen.line();
    screen.line(
      `${screen.paint.bold("KV cache")}  ${formatShare(occupancy)} of ${formatCount(blocks)} blocks in use, ` +
        `${formatCount(freeBlocks)} free  ${screen.paint.dim(oneLine(path.join(" → ")))}`,
    );
  }
}

function printGrowth(screen: Screen, { growth }: GpuProcessJson): void {
  for (const { device, bytesPerStep, bytesPerHour, steps } of growth) {
    const each =
      bytesPerStep === null
        ? "its steps are not marked (tidemark.step)"
        : `${formatSignedBytes(bytesPerStep)} a step over ${formatCount(steps)} steps`;
    screen.line();
    screen.line(
      `${screen.paint.bold(`Growth of device ${device}`)}  ${formatSignedBytes(bytesPerHour)}/h; ${each}`,
    );
  }
}
