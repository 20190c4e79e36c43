import { expect, test } from "vitest";
import { divideAll, type PresentMapping } from "./parts.js";

function mapping(path: string, at: number, rssBytes: number, executable = false): PresentMapping {
  return {
    start: at,
    end: at + 0x100000,
    readable: true,
    writable: !executable,
    executable,
    shared: path.startsWith("/memfd"),
    offset: 0,
    inode: 7,
    path,
    rssBytes,
    cleanBytes: 0,
    dirtyBytes: rssBytes,
  } as PresentMapping;
}

const LIBRARY = mapping("/opt/tidemark/libtidemark.so", 0x200000, 135_168, true);
const POOL = mapping("/memfd:tidemark-pool (deleted)", 0x400000, 200_704);

const own = (...mappings: PresentMapping[]) =>
  divideAll(mappings, () => [], [], null).find(({ part }) => part === "tidemark");

test("detaching returns the agent's pool; its library stays mapped until the process exits", () => {
  expect(own(LIBRARY, POOL)).toMatchObject({
    bytes: 335_872,
    reclaim: "detach",
    reclaimBytes: 200_704,
  });
  expect(own(LIBRARY)).toMatchObject({ bytes: 135_168, reclaim: "nothing", reclaimBytes: 0 });
});
