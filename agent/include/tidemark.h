/* tidemark.h - what libtidemark.so exports beside the allocators: labels and steps.
 *
 * Used by the Python package through ctypes; any program that finds the library in its
 * process may use them. All are safe at any time, in any thread, armed or not.
 */
#ifndef TIDEMARK_H
#define TIDEMARK_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define TIDEMARK_EXPORT __attribute__((visibility("default")))

/* Names the ContextVar (a PyObject that lives as long as its interpreter, and its hash)
 * whose value, a str of `key US value RS key US value ...` (US: \x1f, RS: \x1e), labels
 * every allocation made in its context. Nothing needs to be called when the value changes. */
TIDEMARK_EXPORT void tidemark_set_label_variable(const void *variable, int64_t hash);

/* Marks the timeline: the step `name` (UTF-8) of running number `number` begins or ends. */
TIDEMARK_EXPORT void tidemark_step_begin(const char *name, uint64_t number);
TIDEMARK_EXPORT void tidemark_step_end(const char *name, uint64_t number);

#ifdef __cplusplus
}
#endif

#endif
