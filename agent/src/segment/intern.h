/* intern.h - ids of strings, frames, stacks, labels and threads (intern.c). All (locked). */
#ifndef TIDEMARK_INTERN_H
#define TIDEMARK_INTERN_H

#include <stddef.h>
#include <stdint.h>

/* Id of a string of `length` bytes of UTF-8 (copied; cut at 1000 bytes). 0 ("")
 * if the section is full. */
uint32_t tm_intern_string(const char *bytes, size_t length);

/* Frame ids; TM_NONE if the section is full. `function` and `file` are string ids. */
uint32_t tm_intern_python_frame(uint32_t function, uint32_t file, uint32_t line, uint32_t first_line);
uint32_t tm_intern_native_frame(uint32_t file, uint64_t address);
uint32_t tm_intern_mark(const char *text);

uint32_t tm_intern_stack(uint32_t parent, uint32_t frame); /* the parent's id when full */
uint32_t tm_intern_label(uint32_t parent, uint32_t key, uint32_t value);
uint32_t tm_own_thread_index(void);
/* Updates the name of the calling thread, which may have changed; does so only from time to time. */
void tm_check_thread_name(void);

#endif
