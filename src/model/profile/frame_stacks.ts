/**
 * Since Python 3.11, each thread and each greenlet has its own pages for the frames of its Python functions. The interpreter gets them
 * from the allocator of its arenas, whose function would be shown as the site.
 */
const ALLOCATORS: ReadonlySet<string> = new Set(["_PyMem_ArenaAlloc", "_PyObject_ArenaMmap"]);

/** Shown instead of that function. Arenas themselves are not recorded, because the objects in them are. */
export const FRAME_STACK = "stack of Python frames";

/** The name of a native function as it is shown. */
export function shownFunction(name: string): string {
  return ALLOCATORS.has(name) ? FRAME_STACK : name;
}
