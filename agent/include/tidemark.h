/* tidemark.h - what libtidemark.so exports in addition to the allocators: labels, steps, and
 * arming in a running program: arm, disarm, status.
 *
 * The Python package uses labels and steps through ctypes; any program that finds the library in its process
 * may use them. They may be called at any time, in any thread, armed or not.
 */
#ifndef TIDEMARK_H
#define TIDEMARK_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define TIDEMARK_EXPORT __attribute__((visibility("default")))

/* Sets the ContextVar (a PyObject that lives as long as its interpreter, and its hash)
 * whose value, a str of `key US value RS key US value ...` (US: \x1f, RS: \x1e), labels
 * every allocation made in its context. Nothing needs to be called when the value changes. */
TIDEMARK_EXPORT void tidemark_set_label_variable(const void *variable, int64_t hash);

/* Marks the timeline: the step `name` (UTF-8) of running number `number` begins or ends. */
TIDEMARK_EXPORT void tidemark_step_begin(const char *name, uint64_t number);
TIDEMARK_EXPORT void tidemark_step_end(const char *name, uint64_t number);

/* ---- attaching to a running program (agent/README.md, "Attaching to a running interpreter") ----
 *
 * The caller must hold the GIL if there is an interpreter. Nothing here throws, or waits for much
 * longer than a second. A refusal leaves the process as it was, and writes its reason to `why`:
 *
 *   "ID: sentence"    ID is one of the words below, for programs; the sentence is for users
 *
 *   options   `options` contains an unknown word
 *   pool      the pool cannot be opened, is invalid, is of another version, has no free slot
 *   armed     the agent is already recording: the sentence names the pool; or an agent of another version is
 *             preloaded, or records
 *   storage   no thread-specific key is left (only of libtidemark-keyed.so)
 *   objects   the loaded objects cannot be rewritten (mprotect refused; before Linux 5.14, no /proc)
 *   busy      another thread is arming or disarming, or has never returned from the agent
 *   system    the kernel lacks what a fork needs (MADV_WIPEONFORK, Linux 4.14)
 *
 * All three act on the first copy of this version of the library, if the process has loaded it
 * twice (preloaded and imported, or from two files): the copy loaded first is the one armed. A copy of another
 * version acts for itself. */

/* Starts recording with the options of TIDEMARK ("pool=/proc/PID/fd/N[,period=SIZE][,native]"). Returns 0 if it
 * records, otherwise an errno, with the reason in `why` (truncated to `capacity`, ends with NUL). */
TIDEMARK_EXPORT int tidemark_arm(const char *options, char *why, size_t capacity);

/* Ends recording and restores every pointer that is still ours. Returns 0 if done, or if nothing was armed;
 * otherwise as above. `why` may also report what had to stay (and is harmless). */
TIDEMARK_EXPORT int tidemark_disarm(char *why, size_t capacity);

/* Writes one JSON document about this process (README, "Attaching to a running interpreter"); returns its length. */
TIDEMARK_EXPORT size_t tidemark_status(char *text, size_t capacity);

#ifdef __cplusplus
}
#endif

#endif
