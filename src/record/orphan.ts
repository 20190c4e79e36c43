export function finishOrphan(_path: string): string | null {
  return null;
}
