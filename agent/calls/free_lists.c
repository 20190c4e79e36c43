/* free_lists.c - makes Python free each list, dict and tuple.
 *
 * Python keeps freed objects of these types in free lists, and reuses them. PYTHONMALLOC=malloc does not change that.
 * Valgrind would attribute a reused block to the code that allocated it first, and see no use of an object that was
 * freed too early. Here, each deallocation is followed by an allocation of the same type and length, which takes the
 * object out of the free list, and then its memory is freed.
 */
#include "free_lists.h"

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

/* PyObject and PyVarObject of a release build; PyTypeObject.tp_dealloc. The same in CPython 3.8 to 3.15. */
struct object {
    intptr_t references;
    struct type *type;
    intptr_t size;
};
typedef void deallocate_function(struct object *);
struct type {
    struct object base;
    const char *name;
    intptr_t basic_size, item_size;
    deallocate_function *deallocate;
};

extern struct type PyList_Type, PyDict_Type, PyTuple_Type;
extern struct object *PyList_New(intptr_t);
extern struct object *PyDict_New(void);
extern struct object *PyTuple_New(intptr_t);
extern void PyObject_GC_UnTrack(void *);
extern void PyObject_GC_Del(void *);
extern void PyErr_Clear(void);

/* Longer tuples are never kept; the one of length 0 is never freed. */
#define LONGEST_TUPLE 20
/* Python keeps at most 80 lists and 80 dicts, and few tuples of one length while it starts. */
#define KEPT 100
/* Deeper nested objects wait until the outermost one is freed. Python's own limit compares tp_dealloc with its own
 * function, and does not apply any more. */
#define DEEPEST 50

static deallocate_function *free_list_object, *free_dict_object, *free_tuple_object;

static __thread struct {
    int depth;
    size_t count, capacity;
    struct object **objects;
} waiting;

static struct object *new_like(const struct type *type, intptr_t length)
{
    return type == &PyList_Type ? PyList_New(0) : type == &PyDict_Type ? PyDict_New() : PyTuple_New(length);
}

static void free_memory(struct object *object)
{
    if (object) {
        PyObject_GC_UnTrack(object);
        PyObject_GC_Del(object);
    }
}

static void end_object(struct object *object)
{
    const struct type *type = object->type;
    intptr_t length = type == &PyTuple_Type ? object->size : 0;
    (type == &PyList_Type ? free_list_object : type == &PyDict_Type ? free_dict_object : free_tuple_object)(object);
    if (type != &PyTuple_Type || (length > 0 && length <= LONGEST_TUPLE))
        free_memory(new_like(type, length));
}

static int is_deferred(struct object *object)
{
    if (waiting.depth < DEEPEST)
        return 0;
    if (waiting.count == waiting.capacity) {
        size_t capacity = waiting.capacity ? 2 * waiting.capacity : 64;
        struct object **larger = realloc(waiting.objects, capacity * sizeof *larger);
        if (!larger)
            return 0;
        waiting.objects = larger;
        waiting.capacity = capacity;
    }
    PyObject_GC_UnTrack(object); /* the collector must not see an object without references */
    waiting.objects[waiting.count++] = object;
    return 1;
}

static void end_nested(struct object *object)
{
    if (is_deferred(object))
        return;
    waiting.depth += 1;
    end_object(object);
    if (waiting.depth == 1) {
        while (waiting.count > 0)
            end_object(waiting.objects[--waiting.count]);
        free(waiting.objects);
        waiting.objects = NULL;
        waiting.capacity = 0;
    }
    waiting.depth -= 1;
}

static void end_list(struct object *object)
{
    object->type == &PyList_Type ? end_nested(object) : free_list_object(object);
}

static void end_dict(struct object *object)
{
    object->type == &PyDict_Type ? end_nested(object) : free_dict_object(object);
}

static void end_tuple(struct object *object)
{
    object->type == &PyTuple_Type ? end_nested(object) : free_tuple_object(object);
}

/* Frees what the free list of a type holds now. */
static void empty(const struct type *type, intptr_t length)
{
    struct object *objects[KEPT];
    for (int at = 0; at < KEPT; at++) {
        objects[at] = new_like(type, length);
        if (!objects[at])
            PyErr_Clear();
    }
    for (int at = 0; at < KEPT; at++)
        free_memory(objects[at]);
}

void stop_free_lists(void)
{
    if (PyList_Type.deallocate == end_list)
        return;
    free_list_object = PyList_Type.deallocate;
    free_dict_object = PyDict_Type.deallocate;
    free_tuple_object = PyTuple_Type.deallocate;
    PyList_Type.deallocate = end_list;
    PyDict_Type.deallocate = end_dict;
    PyTuple_Type.deallocate = end_tuple;
    empty(&PyList_Type, 0);
    empty(&PyDict_Type, 0);
    for (intptr_t length = 1; length <= LONGEST_TUPLE; length++)
        empty(&PyTuple_Type, length);
}

void resume_free_lists(void)
{
    if (PyList_Type.deallocate != end_list)
        return;
    PyList_Type.deallocate = free_list_object;
    PyDict_Type.deallocate = free_dict_object;
    PyTuple_Type.deallocate = free_tuple_object;
}
