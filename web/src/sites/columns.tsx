/** Columns that several tables share. */
import { Domain } from "../../../src/model/profile/profile.js";
import type { Column } from "../widgets/DataTable.js";
import type { NamedGroup } from "./useGroups.js";

const DOMAIN_WORDS = {
  [Domain.python]: "Python",
  [Domain.native]: "native",
  [Domain.mapped]: "mapped",
} as const;
const DOMAIN_CLASSES = {
  [Domain.python]: "python",
  [Domain.native]: "native",
  [Domain.mapped]: "mapped",
} as const;

export const functionColumn: Column<NamedGroup> = {
  id: "function",
  name: "Function",
  track: "minmax(7rem, 2fr)",
  cell: ({ words, domain }) => (
    <>
      <i className={`dot dot-${DOMAIN_CLASSES[domain as Domain]}`} />
      <code title={words.function}>{words.function}</code>
    </>
  ),
  order: ({ words }) => words.function,
};

export const placeColumn: Column<NamedGroup> = {
  id: "place",
  name: "File:line",
  track: "minmax(7rem, 1.4fr)",
  wide: true,
  cell: ({ words }) => (
    <span className="place" title={words.line > 0 ? `${words.file}:${words.line}` : words.file}>
      {words.place || "–"}
    </span>
  ),
  order: ({ words }) => `${words.place.split(":")[0]}:${String(words.line).padStart(7, "0")}`,
};

/** `known`: false if the source does not separate Python's allocators from malloc. */
export const domainColumn = (known: boolean): Column<NamedGroup> => ({
  id: "domain",
  name: "Kind",
  title: "Which allocator was called: Python's, malloc or operator new, or mmap",
  track: "5rem",
  wide: true,
  cell: ({ domain }) =>
    known || domain === Domain.mapped ? (DOMAIN_WORDS[domain as Domain] ?? "–") : "unknown",
  order: ({ domain }) => domain,
});
