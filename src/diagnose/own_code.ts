/** Whether Python code is the program's own: neither installed from a package nor the interpreter's. */
export function isOwnPath(file: string, functionName: string): boolean {
  return !(
    /[/\\](?:site|dist)-packages[/\\]|[/\\]lib(?:64)?[/\\]python\d(?:\.\d+)?t?[/\\]|\.zip[/\\]/.test(
      file,
    ) ||
    file.startsWith("<frozen ") ||
    // Scripts that only start a package's main function.
    (/[/\\]bin[/\\][^/\\.]+$/.test(file) && functionName === "<module>")
  );
}
