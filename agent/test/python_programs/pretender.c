/* Exports the names of an interpreter with an untrustworthy version or offsets: VERSION and COOKIE are set on
 * the compiler's command line. Allocates, and ends. With NUMBER it is a library for host.c, and NUMBER is its
 * Py_Version: not even Py_GetVersion may be called. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))

EXPORT struct {
    char cookie[8];
    uint64_t words[120];
} _PyRuntime = {COOKIE, {WORD, 0, WORD, WORD, WORD, WORD, WORD, WORD}};

#ifndef NUMBER
EXPORT const char *Py_GetVersion(void)
{
    return VERSION;
}
#endif

/* None of its functions may be called, because an untrusted interpreter is left alone. */
#define NEVER(name)          \
    EXPORT void *name(void)  \
    {                        \
        abort();             \
    }
NEVER(PyGILState_GetThisThreadState)
NEVER(PyThreadState_GetUnchecked)
NEVER(PyThreadState_GetInterpreter)
NEVER(PyMem_GetAllocator)
NEVER(PyMem_SetAllocator)
NEVER(PyObject_GetArenaAllocator)
NEVER(PyObject_SetArenaAllocator)
NEVER(Py_IsFinalizing)
NEVER(PyCode_Type)
NEVER(PyUnicode_Type)
NEVER(PyBytes_Type)
NEVER(PyLong_Type)

#ifdef NUMBER
NEVER(Py_GetVersion)
EXPORT const unsigned long Py_Version = NUMBER;
EXPORT void Py_InitializeEx(int handlers)
{
    (void)handlers;
}
#define main PyRun_SimpleFile
#endif

EXPORT int main(void)
{
    void *kept[2000];
    for (int i = 0; i < 2000; i++)
        memset(kept[i] = malloc(10000), i, 10000);
    for (int i = 0; i < 1000; i++) { /* the agent searches for new objects from time to time */
        if (i % 100 == 0)
            usleep(20000);
        free(malloc(100000));
    }
    puts(kept[1999] ? "fine" : "");
    fflush(stdout);
    _Exit(0);
}
