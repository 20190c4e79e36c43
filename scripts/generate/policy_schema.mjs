// The JSON Schema of the policy of `tidemark watch`, from the same declaration that reads it: for editors and CI.

/** @returns {Promise<Map<string, string>>} path in the repository -> text */
export async function policySchema() {
  const { policySchema: schema } = await import("../../dist/collect/policy.js");
  return new Map([["docs/json/policy.json", `${JSON.stringify(schema(), null, 2)}\n`]]);
}
