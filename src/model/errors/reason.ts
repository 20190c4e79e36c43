/** Why something failed: the code of a system call that failed ("ENOENT"; "" for any other error), and a sentence. */
export function reasonOf(error: unknown): { readonly code: string; readonly message: string } {
  if (!(error instanceof Error)) {
    return { code: "", message: String(error) };
  }
  const code = "code" in error ? String(error.code) : "";
  return { code, message: error.message };
}
