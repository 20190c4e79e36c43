/**
 * The stacks of a program's threads, by address.
 *
 *   guard | ......... stack, grows down ......... | static TLS | struct pthread |
 *                       ^ stack pointer                         ^ %fs: holds its own address at 0 and 16
 *
 * glibc keeps the stacks of ended threads for reuse; these also have a struct pthread, but no thread's stack
 * pointer. Since glibc 2.42 on new kernels the guard has no mapping of its own, so a stack may share a mapping; its
 * beginning is then known from `stackblock` and its size in struct pthread, two neighbouring words that span the stack.
 * Source: glibc's nptl/descr.h, nptl/allocatestack.c.
 */

import type { AddressRange, Mapping, Memory } from "../linux/memory/memory.js";
import { ResidentWords } from "../linux/memory/resident_words.js";
import { itemAt } from "../model/base/columns.js";
import type { Address } from "../model/base/units.js";

const PAGE = 4096;
/** struct pthread is at the very end of its stack; its beginning is in the last pages. */
const PTHREAD_BYTES = 4096;
const TAIL_PAGES = 2;
const LEAST_STACK = 4 * PAGE;
/** How far above its stack pointer the end of a thread's stack is searched. */
const DEEPEST_WORDS = 2 ** 18;

/** Ascending and disjoint. `pointers` are stack pointers of waiting threads. */
export function findThreadStacks(memory: Memory, pointers: readonly Address[]): AddressRange[] {
  const words = new ResidentWords(memory);
  const stacks: AddressRange[] = [];
  const { mappings } = memory;
  for (let index = 0; index < mappings.length; index++) {
    const mapping = itemAt(mappings, index);
    if (!isPossible(mapping)) {
      continue;
    }
    const before = mappings[index - 1];
    const guarded = before?.end === mapping.start && !before.readable && !before.writable;
    const inside = pointers.filter((sp) => sp >= mapping.start && sp < mapping.end);
    if (guarded && (inside.length > 0 || pthreadIn(words, tailOf(mapping), mapping.end) > 0)) {
      stacks.push({ start: mapping.start, end: mapping.end });
      continue;
    }
    const tails = [tailOf(mapping), ...inside];
    for (const from of tails) {
      const stack = stackAround(words, from, mapping);
      if (
        stack !== null &&
        !stacks.some((other) => other.start < stack.end && stack.start < other.end)
      ) {
        stacks.push(stack);
      }
    }
  }
  return stacks.sort((a, b) => a.start - b.start);
}

function isPossible({ readable, writable, shared, inode, path, start, end }: Mapping): boolean {
  const anonymous = inode === 0 && (path === "" || path.startsWith("[anon"));
  return readable && writable && !shared && anonymous && end - start >= LEAST_STACK;
}

function tailOf({ end }: Mapping): Address {
  return end - TAIL_PAGES * PAGE;
}

/** The first struct pthread at or above `from`; 0 if there is none nearby. */
function pthreadIn(words: ResidentWords, from: Address, end: Address): Address {
  const start = Math.ceil(from / 16) * 16;
  const last = Math.min(end - 24, start + DEEPEST_WORDS * 16);
  for (let at = start; at <= last; at += 16) {
    if (words.word(at) === at && words.word(at + 16) === at) {
      return at;
    }
  }
  return 0;
}

/** The stack that struct pthread itself describes; null if none is found or plausible. */
function stackAround(words: ResidentWords, from: Address, mapping: Mapping): AddressRange | null {
  const pthread = pthreadIn(words, from, mapping.end);
  if (pthread === 0) {
    return null;
  }
  const last = Math.min(pthread + PTHREAD_BYTES, mapping.end) - 16;
  for (let at = pthread + 24; at <= last; at += 8) {
    const block = words.word(at);
    const end = block + words.word(at + 8);
    const spans =
      block >= mapping.start - PAGE * 256 &&
      block <= Math.min(from, pthread) &&
      end > pthread &&
      end <= mapping.end &&
      block % PAGE === 0 &&
      end % PAGE === 0;
    if (spans) {
      return { start: Math.max(block, mapping.start), end };
    }
  }
  return null;
}
