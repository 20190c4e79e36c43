/* An extension whose functions each make one memory error: for the tests of `tidemark memcheck` and `asan`. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <pthread.h>

static PyObject *overflow(PyObject *self, PyObject *none) {
    volatile char *block = malloc(16);
    block[16] = 1;
    free((void *)block);
    Py_RETURN_NONE;
}

static PyObject *use_after_free(PyObject *self, PyObject *none) {
    volatile char *block = malloc(32);
    free((void *)block);
    return PyLong_FromLong(block[3] != 0);
}

static PyObject *free_twice(PyObject *self, PyObject *none) {
    char *volatile block = malloc(32);
    free(block);
    free(block);
    Py_RETURN_NONE;
}

static PyObject *uninitialised(PyObject *self, PyObject *none) {
    volatile int *block = malloc(4 * sizeof(int));
    if (block[2] > 5) {
        block[0] = 1;
    }
    free((void *)block);
    Py_RETURN_NONE;
}

static PyObject *leak(PyObject *self, PyObject *none) {
    volatile char *block = malloc(1000);
    block[0] = 1;
    block = NULL;
    Py_RETURN_NONE;
}

/* Returns a new reference, and leaks another one that nobody owns. */
static PyObject *over_count(PyObject *self, PyObject *none) {
    PyObject *list = PyList_New(100);
    Py_INCREF(list);
    return list;
}

/* Neither returns nor releases its new reference. */
static PyObject *unreleased_bytes(PyObject *self, PyObject *none) {
    PyBytes_FromStringAndSize(NULL, 1000);
    Py_RETURN_NONE;
}

/* Releases a borrowed reference. */
static PyObject *under_count(PyObject *self, PyObject *argument) {
    Py_DECREF(argument);
    Py_RETURN_NONE;
}

static PyObject *signed_overflow(PyObject *self, PyObject *none) {
    volatile int number = 2147483647;
    number += 1;
    Py_RETURN_NONE;
}

static PyObject *crash(PyObject *self, PyObject *none) {
    volatile int *nowhere = (volatile int *)16;
    return PyLong_FromLong(*nowhere);
}

static void *write_beyond(void *block) {
    ((volatile char *)block)[16] = 1;
    return NULL;
}

/* Runs in a thread that Python does not know. */
static PyObject *overflow_in_thread(PyObject *self, PyObject *none) {
    char *block = malloc(16);
    pthread_t thread;
    pthread_create(&thread, NULL, write_beyond, block);
    pthread_join(thread, NULL);
    free(block);
    Py_RETURN_NONE;
}

static PyObject *clean(PyObject *self, PyObject *none) {
    void *block = calloc(4, 100);
    free(block);
    return PyList_New(3);
}

static PyMethodDef methods[] = {
    {"overflow", overflow, METH_NOARGS, NULL},
    {"use_after_free", use_after_free, METH_NOARGS, NULL},
    {"free_twice", free_twice, METH_NOARGS, NULL},
    {"uninitialised", uninitialised, METH_NOARGS, NULL},
    {"leak", leak, METH_NOARGS, NULL},
    {"over_count", over_count, METH_NOARGS, NULL},
    {"unreleased_bytes", unreleased_bytes, METH_NOARGS, NULL},
    {"under_count", under_count, METH_O, NULL},
    {"signed_overflow", signed_overflow, METH_NOARGS, NULL},
    {"crash", crash, METH_NOARGS, NULL},
    {"overflow_in_thread", overflow_in_thread, METH_NOARGS, NULL},
    {"clean", clean, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT, "faulty", NULL, -1, methods, NULL, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit_faulty(void) { return PyModule_Create(&definition); }
