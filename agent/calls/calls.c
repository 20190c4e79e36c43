/* calls.c - the extension module _tidemark_calls: which Python call made Valgrind report an error. Only
 * `tidemark memcheck` and `tidemark asan` load it (python/tidemark/_hooks/frames/sitecustomize.py).
 *
 * A profile function asks Valgrind at each call and return how many errors it has counted. Only when that number and
 * the size of Valgrind's XML file have grown does Python code run, which writes the stack:
 *
 *     begin(PATH)           the XML file of this process; also called in a forked child, after faulthandler.enable(). From
 *                           then on, Python frees each list, dict and tuple (free_lists.c)
 *     free_objects()        only that, for `tidemark asan`
 *     end()                 called before the interpreter is finalized: Python keeps freed objects again
 *     watch(NOTE)           watches the calling thread; NOTE(before, now, is_exact, frame) gets the file's sizes in bytes,
 *                           and where the error was made: enum place. Equal sizes: an error with a stack that Valgrind
 *                           has reported before, at a line that had none yet
 *     show_last_error()     Valgrind writes the stack of that error to its log file
 *     callers() -> tuple    identifiers of the threads in a C function, which may have released the GIL
 *
 * Every call of the program comes here, under Valgrind: a request to Valgrind takes much less than a system call or a
 * line of Python. The structures are those of the stable ABI (agent/src/lifecycle/module.c), with their limits: no
 * free-threaded builds.
 */
#include "free_lists.h"

#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))
#define METH_NOARGS 4
#define METH_O 8
/* Programs close, and use again, the low descriptors. */
#define HIGH_DESCRIPTOR 700

/* The error was made by the C function that returns, in the function of the frame, or in its caller. */
enum place { IN_C_FUNCTION, IN_FRAME, BEFORE_FRAME };

enum event { CALL = 0, RETURN = 3, C_CALL = 4, C_EXCEPTION = 5, C_RETURN = 6 }; /* PyTrace_* */

typedef int profile_function(void *note, void *frame, int event, void *argument);

extern void *PyModuleDef_Init(void *);
extern void PyEval_SetProfile(profile_function *, void *);
extern void *PyObject_CallFunction(void *, const char *, ...);
extern void *PyTuple_New(intptr_t);
extern int PyTuple_SetItem(void *, intptr_t, void *);
extern void *PyLong_FromUnsignedLong(unsigned long);
extern const char *PyUnicode_AsUTF8AndSize(void *, intptr_t *);
extern void PyErr_Fetch(void **, void **, void **);
extern void PyErr_Restore(void *, void *, void *);
extern void PyErr_SetString(void *, const char *);
extern void Py_IncRef(void *);
extern void Py_DecRef(void *);
extern void *PyExc_ValueError;
extern char _Py_NoneStruct;
extern void *PyFrame_GetCode(void *) __attribute__((weak));
extern int PyFrame_GetLineNumber(void *);

struct thread {
    unsigned long identifier; /* as threading.get_ident() returns it */
    int event;                /* the last one */
    struct thread *next;
};

static char path[PATH_MAX];
static int xml = -1;
static off_t size;
static unsigned long errors;
/* Changed and read with the GIL only. An entry stays when its thread ends. */
static struct thread *threads;
static __thread struct thread *here;

/* VALGRIND_COUNT_ERRORS (Valgrind's manual, "The Client Request mechanism"): errors that are not suppressed. Outside
 * Valgrind these instructions do nothing. */
static unsigned long count_errors(void)
{
    const unsigned long request[6] = {0x1201};
    unsigned long answer = 0;
    __asm__ volatile("rolq $3, %%rdi\n\trolq $13, %%rdi\n\trolq $61, %%rdi\n\trolq $51, %%rdi\n\txchgq %%rbx, %%rbx"
                     : "+d"(answer)
                     : "a"(request)
                     : "cc", "memory");
    return answer;
}

/* VALGRIND_MONITOR_COMMAND: Valgrind writes the stack of the last error to its log file. */
static void write_last_error(void)
{
    const unsigned long request[6] = {0x1202, (unsigned long)"v.info last_error"};
    unsigned long answer = 0;
    __asm__ volatile("rolq $3, %%rdi\n\trolq $13, %%rdi\n\trolq $61, %%rdi\n\trolq $51, %%rdi\n\txchgq %%rbx, %%rbx"
                     : "+d"(answer)
                     : "a"(request)
                     : "cc", "memory");
}

static off_t size_of_xml(void)
{
    off_t now = xml < 0 ? -1 : lseek(xml, 0, SEEK_END);
    if (now >= 0)
        return now;
    /* A forked child's file appears with its first report. Or the program closed every descriptor. */
    int low = open(path, O_RDONLY | O_CLOEXEC);
    if (low < 0)
        return size;
    xml = fcntl(low, F_DUPFD_CLOEXEC, HIGH_DESCRIPTOR);
    if (xml < 0)
        xml = low; /* the limit of open files is lower */
    else
        close(low);
    return lseek(xml, 0, SEEK_END);
}

/* Whether no error was noticed at this line before. Few lines of a program have errors. */
static int is_new_line(void *frame)
{
    static uintptr_t seen[1 << 12];
    static unsigned count;
    void *code = PyFrame_GetCode ? PyFrame_GetCode(frame) : NULL; /* from CPython 3.9 on */
    if (!code || count > sizeof seen / sizeof *seen / 2)
        return 0;
    uintptr_t line = ((uintptr_t)code >> 4) * 31 + (uintptr_t)PyFrame_GetLineNumber(frame);
    Py_DecRef(code);
    for (size_t at = line * 0x9e3779b97f4a7c15u >> 52;; at = (at + 1) % (sizeof seen / sizeof *seen)) {
        if (seen[at] == line)
            return 0;
        if (seen[at] == 0) {
            seen[at] = line;
            count += 1;
            return 1;
        }
    }
}

static void write_note(void *note, void *frame, enum place place)
{
    off_t before = size, now = size_of_xml();
    if (now == before && !is_new_line(frame))
        return; /* an error that was reported before */
    size = now;
    void *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    void *result = PyObject_CallFunction(note, "LLiO", (long long)before, (long long)now, (int)place, frame);
    if (result)
        Py_DecRef(result);
    /* After an error of the extension, even this can fail: the report comes without its stack. */
    PyErr_Restore(type, value, traceback);
}

static int on_event(void *note, void *frame, int event, void *argument)
{
    (void)argument;
    if (!here) {
        unsigned long identifier = (unsigned long)pthread_self();
        for (here = threads; here && here->identifier != identifier; here = here->next)
            ;
        if (!here && (here = malloc(sizeof *here))) {
            *here = (struct thread){.identifier = identifier, .next = threads};
            threads = here;
        }
    }
    unsigned long now = count_errors();
    if (now != errors) {
        errors = now;
        write_note(note, frame,
                   event == C_RETURN || event == C_EXCEPTION ? IN_C_FUNCTION
                   : event == CALL                           ? BEFORE_FRAME
                                                             : IN_FRAME);
    }
    if (here)
        here->event = event;
    return 0;
}

static void *none(void)
{
    Py_IncRef(&_Py_NoneStruct);
    return &_Py_NoneStruct;
}

/* faulthandler's handler runs on a stack of its own, where Valgrind finds no caller of abort(). Only a stack that is
 * full, which is a SIGSEGV, needs that. */
static void handle_on_same_stack(int signal)
{
    struct sigaction action;
    if (sigaction(signal, NULL, &action) == 0 && action.sa_flags & SA_ONSTACK) {
        action.sa_flags &= ~SA_ONSTACK;
        sigaction(signal, &action, NULL);
    }
}

static void *call_begin(void *module, void *argument)
{
    (void)module;
    intptr_t length;
    const char *text = PyUnicode_AsUTF8AndSize(argument, &length);
    if (!text)
        return NULL;
    if (length >= (intptr_t)sizeof path) {
        PyErr_SetString(PyExc_ValueError, "the path is too long");
        return NULL;
    }
    strcpy(path, text);
    if (xml >= 0)
        close(xml);
    xml = -1;
    size = 0;
    size = size_of_xml();
    stop_free_lists();
    handle_on_same_stack(SIGABRT);
    handle_on_same_stack(SIGFPE);
    handle_on_same_stack(SIGILL);
    errors = count_errors();
    for (struct thread *thread = threads; thread; thread = thread->next)
        thread->event = CALL; /* a forked child has only the thread that forked */
    return none();
}

static void *call_show_last_error(void *module, void *argument)
{
    (void)module, (void)argument;
    write_last_error();
    return none();
}

static void *call_free_objects(void *module, void *argument)
{
    (void)module, (void)argument;
    stop_free_lists();
    return none();
}

static void *call_end(void *module, void *argument)
{
    (void)module, (void)argument;
    resume_free_lists();
    return none();
}

static void *call_watch(void *module, void *note)
{
    (void)module;
    PyEval_SetProfile(on_event, note);
    return none();
}

static void *call_callers(void *module, void *argument)
{
    (void)module, (void)argument;
    intptr_t count = 0;
    for (struct thread *thread = threads; thread; thread = thread->next)
        count += thread->event == C_CALL;
    void *tuple = PyTuple_New(count);
    for (struct thread *thread = threads; tuple && thread; thread = thread->next)
        if (thread->event == C_CALL)
            PyTuple_SetItem(tuple, --count, PyLong_FromUnsignedLong(thread->identifier));
    return tuple;
}

static const struct {
    const char *name;
    void *(*function)(void *module, void *argument);
    int flags;
    const char *documentation;
} methods[] = {
    {"begin", call_begin, METH_O, "begin(path)\n\nNames Valgrind's XML file of this process."},
    {"free_objects", call_free_objects, METH_NOARGS, "free_objects()\n\nHas Python free each list, dict and tuple."},
    {"show_last_error", call_show_last_error, METH_NOARGS, "show_last_error()\n\nWrites it to Valgrind's log file."},
    {"end", call_end, METH_NOARGS, "end()\n\nBefore the interpreter is finalized."},
    {"watch", call_watch, METH_O, "watch(note)\n\nWatches the calling thread."},
    {"callers", call_callers, METH_NOARGS, "callers() -> tuple\n\nIdentifiers of the threads in a C function."},
    {NULL, NULL, 0, NULL},
};

static struct {
    intptr_t references;
    const void *type;
    void *(*init)(void);
    intptr_t index;
    void *copy;
    const char *name;
    const char *documentation;
    intptr_t size;
    const void *methods;
    void *slots, *traverse, *clear, *free;
} definition = {
    .references = 1,
    .name = "_tidemark_calls",
    .documentation = "Which Python call made Valgrind report an error.",
    .methods = methods,
};

EXPORT void *PyInit__tidemark_calls(void)
{
    return PyModuleDef_Init(&definition);
}
