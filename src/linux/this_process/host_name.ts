import { hostname } from "node:os";

/** The host's name. In a pod that is the node's, which the Helm chart passes in, because the pod has a name of its own. */
export function hostName(): string {
  return process.env.TIDEMARK_NODE_NAME || hostname();
}
