import type { FileFacts } from "../flow/file_facts.js";
import type { Scope } from "../scopes/scope.js";
import { integerValue, keyword } from "../syntax/expressions.js";
import type { SyntaxNode } from "../syntax/tree.js";
import { code } from "./growing.js";
import type { Rule } from "./rule.js";

export const datasetOfObjects: Rule = {
  id: "TM-L033",
  name: "dataset-of-python-objects",
  severity: "warning",
  finds:
    "A `Dataset` that holds a list or dict of Python objects and that a `DataLoader` reads in worker processes.",
  why: "Each worker shares the list with its parent until the worker reads it. Reading changes the reference counts, and the kernel then copies the pages.",
  speed: "Up to the size of the list for each worker, within the first epoch.",
  before: `
from torch.utils.data import DataLoader, Dataset

class Lines(Dataset):
    def __init__(self, path):
        self.lines = open(path).read().splitlines()

    def __getitem__(self, index):
        return self.lines[index]

loader = DataLoader(Lines("train.txt"), num_workers=8)
`,
  after: `
import numpy as np
from torch.utils.data import DataLoader, Dataset

class Lines(Dataset):
    def __init__(self, path):
        self.lines = np.array(read_lines(path), dtype=np.bytes_)

    def __getitem__(self, index):
        return self.lines[index].decode()

loader = DataLoader(Lines("train.txt"), num_workers=8)
`,
  ignore: "The list has few entries, such as the names of a few thousand files.",
  proof: "`tidemark diagnose PID` reports the kind `copy-on-write`, with the USS of each worker.",
  *check(file) {
    if (!hasWorkers(file)) {
      return;
    }
    for (const owner of file.module.classes) {
      const isDataset = file.names
        .baseNames(owner)
        .some((base) => /(?:^|\.)(?:Dataset|IterableDataset|VisionDataset|MapDataset)$/.test(base));
      const list = isDataset ? listOf(owner, file) : null;
      if (list !== null) {
        yield {
          node: list.node,
          message: `each worker of the ${code("DataLoader")} copies ${code(`self.${list.name}`)} of ${code(owner.name)} while it reads it`,
        };
      }
    }
  },
};

function hasWorkers(file: FileFacts): boolean {
  return file.module.callsOf("DataLoader").some(({ node }) => {
    const workers = keyword(node, "num_workers");
    return workers !== null && integerValue(workers) !== 0;
  });
}

const READERS =
  /(?:^|\.)(?:json\.loads?|pickle\.load|csv\.\w+|splitlines|readlines|split|list|sorted|listdir|glob|rglob|to_dict|tolist|load_json|read_jsonl|iterrows|items|walk|yaml\.\w+|safe_load)$/;

/** An attribute that holds Python objects and that `__getitem__` reads. */
function listOf(owner: Scope, file: FileFacts): { name: string; node: SyntaxNode } | null {
  const getter =
    file.names.methodOf(owner, "__getitem__") ?? file.names.methodOf(owner, "__iter__");
  if (getter === null) {
    return null;
  }
  for (const name of file.slots.attributesOf(owner)) {
    const slot = file.slots.slot(owner, name);
    if (!new RegExp(`\\bself\\.${name}\\b`).test(getter.node.text)) {
      continue;
    }
    const growth = file.containers.of(slot);
    const write = file.slots
      .writesOf(slot)
      .find(({ value }) => value !== null && holdsObjects(value, file));
    const isFilled =
      growth !== null && growth.container.kind !== "queue" && growth.grows.length > 0;
    const node = write?.value ?? growth?.grows[0]?.at;
    if (
      node !== undefined &&
      (isFilled || write !== undefined) &&
      !/cache|transform|config|augment|class_to_idx|classes/.test(name)
    ) {
      return { name, node };
    }
  }
  return null;
}

function holdsObjects(value: SyntaxNode, file: FileFacts): boolean {
  const node = file.names.valueOf(value);
  if (node.kind === "list_comprehension" || node.kind === "dictionary_comprehension") {
    return true;
  }
  const callee = node.kind === "call" ? node.child("function") : null;
  return callee !== null && READERS.test(callee.text);
}
