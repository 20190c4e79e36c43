/**
 * What single nodes retain, without the dominators of the whole graph. Nearly every path of the path tree avoids a node,
 * so only the nodes below it in that tree can be retained by it:
 *
 *     root ──> a ──> holder ──┬─> b      all edges to b come from below: retained
 *              └──────────────┼─> c      one edge comes from elsewhere: not retained, nor is what it leads to
 *                             └─> d ──> c
 *
 * The dominators are computed only if a column of them is asked for, or so many nodes that it is the smaller work.
 */
import type { Bytes, Objects } from "../base/units.js";
import type { DominatorTree, HeapGraph, NodeId } from "./heap_graph.js";
import type { PathTree } from "./heap_paths.js";

/** States of a node below the one that is asked for. */
const BELOW = 1;
const ESCAPED = 2;
/** With more, it is less work to sum up what every node is the only referrer of. */
const FEW_QUESTIONS = 3;
/** Nodes visited for all questions together, as a multiple of the graph's. */
const MOST_VISITED = 2;

interface Retained {
  readonly bytes: Bytes;
  readonly objects: Objects;
}

export class Retention implements DominatorTree {
  readonly #graph: HeapGraph;
  readonly #paths: PathTree;
  readonly #makeTree: () => DominatorTree;
  #tree: DominatorTree | null = null;
  readonly #answers = new Map<NodeId, Retained>();
  /** For the newest question: the node, those below it, and their states. */
  #node: NodeId = 0;
  #below: NodeId[] = [];
  readonly #state: Uint8Array;
  /** By node: how many edges lead to it, and how many of them come from below. */
  readonly #edges: Uint32Array;
  readonly #inner: Uint32Array;
  /** By node: what it is the only referrer of. */
  #alone: { readonly bytes: Float64Array; readonly objects: Uint32Array } | null = null;
  #visited = 0;

  /** `edges`: by node, how many edges of reachable nodes lead to it. */
  constructor(
    graph: HeapGraph,
    paths: PathTree,
    edges: Uint32Array,
    makeTree: () => DominatorTree,
  ) {
    this.#graph = graph;
    this.#paths = paths;
    this.#makeTree = makeTree;
    this.#edges = edges;
    // Memory that is not used stays untouched.
    this.#state = new Uint8Array(graph.nodes);
    this.#inner = new Uint32Array(graph.nodes);
  }

  retainedBytes(node: NodeId): Bytes {
    return this.#answerFor(node)?.bytes ?? this.#whole.retainedBytes(node);
  }

  retainedObjects(node: NodeId): Objects {
    return this.#answerFor(node)?.objects ?? this.#whole.retainedObjects(node);
  }

  dominates(above: NodeId, node: NodeId): boolean {
    if (above === node) {
      return false;
    }
    if (!this.#search(above)) {
      return this.#whole.dominates(above, node);
    }
    const isShared = this.#edges[node] !== 0;
    const referrer = isShared ? 0 : (this.#graph.onlyReferrer?.[node] ?? 0);
    return this.#state[referrer || node] === BELOW;
  }

  get dominator() {
    return this.#whole.dominator;
  }

  get retained() {
    return this.#whole.retained;
  }

  get retainedNodes() {
    return this.#whole.retainedNodes;
  }

  get reached() {
    return this.#whole.reached;
  }

  get order() {
    return this.#whole.order;
  }

  get #whole(): DominatorTree {
    this.#tree ??= this.#makeTree();
    return this.#tree;
  }

  /** null if the dominators are to be asked. */
  #answerFor(node: NodeId): Retained | null {
    let answer = this.#answers.get(node);
    if (answer === undefined) {
      if (!this.#search(node)) {
        return null;
      }
      answer = this.#sum();
      this.#answers.set(node, answer);
    }
    return answer;
  }

  /** Finds what a node retains; false if the dominators are to be asked. */
  #search(node: NodeId): boolean {
    if (this.#tree !== null || this.#visited > MOST_VISITED * this.#graph.nodes || node === 0) {
      return false;
    }
    if (node !== this.#node) {
      this.#findBelow(node);
      this.#findEscaped();
      this.#visited += this.#below.length;
    }
    return true;
  }

  /** The node and those whose path leads through it, and how many of their edges come from one of them. */
  #findBelow(node: NodeId): void {
    const { edgeStart, edgeTo } = this.#graph;
    const { before } = this.#paths;
    for (const one of this.#below) {
      this.#state[one] = 0;
    }
    const [state, inner] = [this.#state, this.#inner];
    const below = [node];
    state[node] = BELOW;
    inner[node] = 0;
    for (let next = 0; next < below.length; next++) {
      const from = below[next] ?? 0;
      for (let edge = edgeStart[from] ?? 0; edge < (edgeStart[from + 1] ?? 0); edge++) {
        const to = edgeTo[edge] ?? 0;
        if (state[to] === 0 && before[to] === from) {
          state[to] = BELOW;
          inner[to] = 0;
          below.push(to);
        }
      }
    }
    for (const from of below) {
      for (let edge = edgeStart[from] ?? 0; edge < (edgeStart[from + 1] ?? 0); edge++) {
        const to = edgeTo[edge] ?? 0;
        if (state[to] === BELOW) {
          inner[to] = (inner[to] ?? 0) + 1;
        }
      }
    }
    this.#node = node;
    this.#below = below;
  }

  /** Those with an edge from elsewhere, and what they lead to. */
  #findEscaped(): void {
    const { edgeStart, edgeTo, onlyReferrer } = this.#graph;
    const [state, inner, edges, node] = [this.#state, this.#inner, this.#edges, this.#node];
    const isHeldElsewhere = (one: NodeId) => {
      const referrer = edges[one] === 0 ? 0 : (onlyReferrer?.[one] ?? 0);
      return inner[one] !== edges[one] || (referrer !== 0 && state[referrer] !== BELOW);
    };
    const escaped: NodeId[] = [];
    const letGo = (one: NodeId) => {
      if (one !== node && state[one] === BELOW) {
        state[one] = ESCAPED;
        escaped.push(one);
      }
    };
    for (const one of this.#below) {
      if (isHeldElsewhere(one)) {
        letGo(one);
      }
    }
    for (let from = escaped.pop(); from !== undefined; from = escaped.pop()) {
      for (let edge = edgeStart[from] ?? 0; edge < (edgeStart[from + 1] ?? 0); edge++) {
        letGo(edgeTo[edge] ?? 0);
      }
    }
  }

  #sum(): Retained {
    const { shallow } = this.#graph;
    const isOneOfMany = this.#answers.size >= FEW_QUESTIONS;
    this.#alone ??= isOneOfMany ? this.#sumAlone() : null;
    let { bytes, objects } = isOneOfMany ? { bytes: 0, objects: 0 } : this.#aloneBelow();
    for (const one of this.#below) {
      if (this.#state[one] === BELOW) {
        bytes += (shallow[one] ?? 0) + (this.#alone?.bytes[one] ?? 0);
        objects += 1 + (this.#alone?.objects[one] ?? 0);
      }
    }
    return { bytes, objects };
  }

  /** The objects whose only referrer the newest node retains. */
  #aloneBelow(): Retained {
    const { nodes, onlyReferrer, shallow } = this.#graph;
    const [state, edges] = [this.#state, this.#edges];
    let [bytes, objects] = [0, 0];
    for (let node = 0; onlyReferrer !== undefined && node < nodes; node++) {
      const referrer = onlyReferrer[node] ?? 0;
      if (referrer !== 0 && state[referrer] === BELOW && edges[node] === 0) {
        bytes += shallow[node] ?? 0;
        objects += 1;
      }
    }
    return { bytes, objects };
  }

  #sumAlone() {
    const { nodes, onlyReferrer, shallow } = this.#graph;
    const bytes = new Float64Array(nodes);
    const objects = new Uint32Array(nodes);
    for (let node = 0; onlyReferrer !== undefined && node < nodes; node++) {
      const referrer = onlyReferrer[node] ?? 0;
      if (referrer !== 0 && this.#edges[node] === 0) {
        bytes[referrer] = (bytes[referrer] ?? 0) + (shallow[node] ?? 0);
        objects[referrer] = (objects[referrer] ?? 0) + 1;
      }
    }
    return { bytes, objects };
  }
}
