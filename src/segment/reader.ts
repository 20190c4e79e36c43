/** One process's segment, read repeatedly while its owner keeps writing. */

import { pause } from "../linux/hold/pause.js";
import { itemAt } from "../model/base/columns.js";
import { damagedInput } from "../model/errors/errors.js";
import { readAt } from "./bytes.js";
import { parseSegmentHeader, type SegmentHeader } from "./header.js";
import {
  CONSTANTS,
  EVENT,
  FRAME,
  LABEL,
  LIVE,
  OPENING,
  SEGMENT_HEADER,
  SITE,
  STACK_NODE,
  THREAD,
} from "./layout.js";
import { AppendedCopy, RewrittenCopy } from "./section_copy.js";

/** The data of one snapshot. The copies belong to the reader and are valid until its next snapshot. */
export interface SegmentSnapshot {
  readonly header: SegmentHeader;
  readonly strings: AppendedCopy;
  readonly frames: AppendedCopy;
  readonly stacks: AppendedCopy;
  readonly labels: AppendedCopy;
  readonly threads: RewrittenCopy;
  readonly sites: RewrittenCopy;
  readonly live: RewrittenCopy;
  readonly events: RewrittenCopy;
  readonly openings: RewrittenCopy;
  /** Records that stayed torn after three tries. */
  readonly torn: number;
  /** Records that the segment counts but that are beyond the end of the file. */
  readonly missing: number;
}

const LAYOUT_TRIES = 8;

export class SegmentReader {
  readonly #strings = new AppendedCopy(1);
  readonly #frames = new AppendedCopy(FRAME.size);
  readonly #stacks = new AppendedCopy(STACK_NODE.size);
  readonly #labels = new AppendedCopy(LABEL.size);
  readonly #threads = new RewrittenCopy(THREAD.size, CONSTANTS.TM_SECTION_BLOCKS);
  readonly #sites = new RewrittenCopy(SITE.size, CONSTANTS.TM_SECTION_BLOCKS);
  readonly #live = new RewrittenCopy(LIVE.size, CONSTANTS.TM_SECTION_BLOCKS);
  readonly #events = new RewrittenCopy(EVENT.size, CONSTANTS.TM_SECTION_BLOCKS);
  readonly #openings = new RewrittenCopy(OPENING.size, CONSTANTS.TM_SECTION_BLOCKS, false);
  readonly #fd: number;
  readonly #range: { readonly offset: number; readonly length: number };
  readonly #source: string;
  #owner = "";

  /** The segment lies in `fd` at `range`, see {@link PoolReader.slotRange}. One reader for one owner:
   * when the slot belongs to another process, create a new reader. */
  constructor(
    fd: number,
    range: { readonly offset: number; readonly length: number },
    source = "the agent's memory",
  ) {
    this.#fd = fd;
    this.#range = range;
    this.#source = source;
  }

  /** The current segment; null until its owner has initialized it.
   * @throws TidemarkError TM-E005 damaged or another owner's, TM-E006 other version */
  snapshot(): SegmentSnapshot | null {
    for (let tries = 1; ; tries++) {
      const last = tries === LAYOUT_TRIES;
      const before = this.#page();
      // Odd: sections are being moved. Permanently odd: the owner was killed while moving one.
      if (layoutGeneration(before) % 2 === 1 && !last) {
        pause();
        continue;
      }
      try {
        const header = this.#parse(before);
        if (header === null) {
          return null;
        }
        const after = this.#copy(header);
        // Copies that straddle a new peak mix two.
        const ofOnePeak = header.peakNumber === after.peakNumber;
        if (last || (this.#unmoved(header, after) && ofOnePeak)) {
          return this.#snapshot(after);
        }
      } catch (error) {
        if (last || layoutGeneration(before) === layoutGeneration(this.#page())) {
          throw error;
        }
      }
    }
  }

  /** Copies the changes; returns the header that the dictionaries were copied with. */
  #copy(header: SegmentHeader): SegmentHeader {
    const read = (target: Uint8Array, offset: number) =>
      readAt(this.#fd, target, this.#range.offset + offset, this.#source);
    const { sections } = header;
    const live = itemAt(sections, CONSTANTS.TM_SECTION_LIVE);
    const sites = itemAt(sections, CONSTANTS.TM_SECTION_SITES);
    this.#live.refresh(read, live, live.capacity);
    this.#sites.refresh(read, sites, sites.count);
    const openings = itemAt(sections, CONSTANTS.TM_SECTION_OPENINGS);
    this.#openings.refresh(read, openings, openings.count);
    // Figures are read first, then the dictionaries with newly read counts, so that every id in the figures
    // exists in them.
    const after = this.#parse(this.#page());
    if (after === null) {
      throw damagedInput(this.#source, "a segment was wiped while it was read");
    }
    const threads = itemAt(after.sections, CONSTANTS.TM_SECTION_THREADS);
    const events = itemAt(after.sections, CONSTANTS.TM_SECTION_EVENTS);
    this.#threads.refresh(read, threads, threads.count);
    this.#events.refresh(read, events, events.count);
    this.#labels.refresh(read, itemAt(after.sections, CONSTANTS.TM_SECTION_LABELS));
    this.#stacks.refresh(read, itemAt(after.sections, CONSTANTS.TM_SECTION_STACKS));
    this.#frames.refresh(read, itemAt(after.sections, CONSTANTS.TM_SECTION_FRAMES));
    this.#strings.refresh(read, itemAt(after.sections, CONSTANTS.TM_SECTION_STRINGS));
    return after;
  }

  #unmoved(before: SegmentHeader, after: SegmentHeader): boolean {
    return (
      after.layoutGeneration === before.layoutGeneration &&
      layoutGeneration(this.#page()) === after.layoutGeneration
    );
  }

  #page(): Uint8Array {
    const page = new Uint8Array(CONSTANTS.TM_PAGE);
    const length = readAt(this.#fd, page, this.#range.offset, this.#source);
    if (length < SEGMENT_HEADER.size) {
      throw damagedInput(this.#source, "a segment is truncated within its header");
    }
    return page;
  }

  #parse(page: Uint8Array): SegmentHeader | null {
    const header = parseSegmentHeader(page, this.#range.length, this.#source);
    if (header !== null) {
      const owner = `${header.pid} ${header.processStartTicks} ${header.image} ${header.startMonotonicMs}`;
      if (this.#owner !== "" && this.#owner !== owner) {
        throw damagedInput(this.#source, "another process has taken the segment");
      }
      this.#owner = owner;
    }
    return header;
  }

  #snapshot(header: SegmentHeader): SegmentSnapshot {
    const rewritten = [this.#threads, this.#sites, this.#live, this.#events, this.#openings];
    const all = [this.#strings, this.#frames, this.#stacks, this.#labels, ...rewritten];
    return {
      header,
      strings: this.#strings,
      frames: this.#frames,
      stacks: this.#stacks,
      labels: this.#labels,
      threads: this.#threads,
      sites: this.#sites,
      live: this.#live,
      events: this.#events,
      openings: this.#openings,
      torn: rewritten.reduce((sum, copy) => sum + copy.torn, 0),
      missing: all.reduce((sum, copy) => sum + copy.missing, 0),
    };
  }
}

function layoutGeneration(page: Uint8Array): number {
  return new DataView(page.buffer, page.byteOffset).getUint32(
    SEGMENT_HEADER.layout_generation,
    true,
  );
}
