#ifndef FREE_LISTS_H
#define FREE_LISTS_H

/* From now on, Python frees each list, dict and tuple at its deallocation. Called with the GIL. */
void stop_free_lists(void);

/* Python's own deallocation again: while the interpreter is finalized, it may not allocate any more. */
void resume_free_lists(void);

#endif
