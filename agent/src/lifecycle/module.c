/* module.c - the library as a CPython extension module, without CPython's headers or a link to it.
 *
 * The functions needed come from the importing interpreter: the object that contains our caller.
 * (A host may have opened its libpython with RTLD_LOCAL: then our scope has none of its names.) The
 * two structures are those of the stable ABI. They are the same in 3.9-3.15 except in free-threaded builds and
 * builds that trace references, whose object heads differ: these are refused before a structure is used.
 *
 *   PyModuleDef   PyObject head | m_init | m_index | m_copy | name | doc | size | methods | slots ...
 *   PyMethodDef   name | function | flags | doc
 *
 * PyInit returns a definition, not a module (PEP 489): if it created a module at once, the interpreter would
 * keep a copy for each path from which the module was ever imported.
 */
#include <stdint.h>
#include <string.h>

#include "process/objects.h"
#include "tidemark.h"

#define METH_NOARGS 4
#define METH_O 8
#define LONGEST_TEXT 8192u

struct method {
    const char *name;
    void *(*function)(void *module, void *argument);
    int flags;
    const char *documentation;
};

struct definition {
    intptr_t references;
    const void *type;
    void *(*init)(void);
    intptr_t index;
    void *copy;
    const char *name;
    const char *documentation;
    intptr_t size;
    const struct method *methods;
    void *slots, *traverse, *clear, *free;
};

static struct {
    void *(*define)(struct definition *);                     /* PyModuleDef_Init */
    void *(*make_text)(const char *, intptr_t, const char *); /* PyUnicode_DecodeUTF8 */
    const char *(*read_text)(void *, intptr_t *);             /* PyUnicode_AsUTF8AndSize */
    void (*raise)(void *type, const char *message);           /* PyErr_SetString */
    void **import_error, **runtime_error;
} python;

static void *status(void)
{
    char text[LONGEST_TEXT];
    size_t length = tidemark_status(text, sizeof text);
    return python.make_text(text, (intptr_t)length, "replace");
}

static void *refuse(const char *why)
{
    python.raise(*python.runtime_error, why);
    return NULL;
}

static void *call_arm(void *module, void *argument)
{
    (void)module;
    intptr_t length;
    char why[1024];
    const char *options = python.read_text(argument, &length);
    if (!options)
        return NULL; /* TypeError, or the error of an unusual str */
    if (strlen(options) != (size_t)length)
        return refuse("options: they hold a null character");
    return tidemark_arm(options, why, sizeof why) == 0 ? status() : refuse(why);
}

static void *call_disarm(void *module, void *argument)
{
    (void)module, (void)argument;
    char why[1024];
    return tidemark_disarm(why, sizeof why) == 0 ? status() : refuse(why);
}

static void *call_status(void *module, void *argument)
{
    (void)module, (void)argument;
    return status();
}

static const struct method methods[] = {
    {"arm", call_arm, METH_O, "arm(options) -> str\n\nStarts recording; the status as JSON."},
    {"disarm", call_disarm, METH_NOARGS, "disarm() -> str\n\nEnds recording and takes everything back."},
    {"status", call_status, METH_NOARGS, "status() -> str\n\nWhat the agent does here, as JSON."},
    {NULL, NULL, 0, NULL},
};

static struct definition definition = {
    .references = 1,
    .name = "_tidemark_agent",
    .documentation = "Tidemark's agent: records where this process's memory goes.",
    .methods = methods,
};

struct importer {
    uintptr_t caller;
    const char *problem;
};

static int read_importer(const struct tm_object *object, void *data)
{
    struct importer *importer = data;
    if (importer->caller < object->start || importer->caller >= object->end)
        return 0;
    python.define = (void *(*)(struct definition *))tm_object_symbol(object, "PyModuleDef_Init");
    python.make_text = (void *(*)(const char *, intptr_t, const char *))tm_object_symbol(object, "PyUnicode_DecodeUTF8");
    python.read_text = (const char *(*)(void *, intptr_t *))tm_object_symbol(object, "PyUnicode_AsUTF8AndSize");
    python.raise = (void (*)(void *, const char *))tm_object_symbol(object, "PyErr_SetString");
    python.import_error = tm_object_symbol(object, "PyExc_ImportError");
    python.runtime_error = tm_object_symbol(object, "PyExc_RuntimeError");
    const char *(*version)(void) = (const char *(*)(void))tm_object_symbol(object, "Py_GetVersion");
    if (!version || strstr(version(), "free-threading"))
        importer->problem = "tidemark: this is a free-threaded build of Python, which is not supported yet";
    if (tm_object_symbol(object, "_Py_PrintReferences"))
        importer->problem = "tidemark: this build of Python traces references, which is not supported";
    return 1;
}

TIDEMARK_EXPORT void *PyInit__tidemark_agent(void)
{
    struct importer importer = {.caller = (uintptr_t)__builtin_return_address(0)};
    tm_each_object(read_importer, &importer);
    if (!python.raise || !python.import_error)
        return NULL; /* not called by an interpreter, so an error cannot be reported */
    if (!python.define || !python.make_text || !python.read_text || !python.runtime_error)
        importer.problem = "tidemark: this interpreter does not export what an extension module needs";
    if (importer.problem) {
        python.raise(*python.import_error, importer.problem);
        return NULL;
    }
    return python.define(&definition);
}
