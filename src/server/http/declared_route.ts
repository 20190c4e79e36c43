/** How a route of the server is declared, with its parameters and its answer. */
import type { ApiAnswers } from "../../model/wire/api_answers.js";
import type { Parameters } from "./parameters.js";
import type { Scope } from "./tokens.js";

/** The answer with status 200: a JSON document of that name, or a body of that type. */
type Answer = { readonly json: keyof ApiAnswers } | { readonly type: string };

export interface ApiRoute {
  readonly method: "get" | "post" | "put";
  readonly path: string;
  readonly group: "services" | "sending" | "grafana" | "operation";
  readonly summary: string;
  /** null if no token is needed. */
  readonly scope: Scope | null;
  readonly parameters: Parameters;
  /** Types of the request's body. */
  readonly body?: readonly string[];
  readonly answer: Answer;
}

export function route<Declared extends Parameters>(
  declared: Omit<ApiRoute, "parameters"> & { readonly parameters: Declared },
) {
  return declared;
}

export const COLUMNS_TYPE = "application/vnd.tidemark.columns";

/** What routes that only read have in common. */
export const query = { method: "get", group: "services", scope: "read" } as const;
