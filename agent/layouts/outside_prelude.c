/* outside_prelude.c - what generate_outside.py puts before its expressions: CPython's headers, and the few
 * structures that some versions define in .c files instead. Compiled with -DPy_BUILD_CORE; never part of the
 * agent. */
#include <stddef.h>
#include <stdio.h>
#include "Python.h"
#include "internal/pycore_interp.h"
#include "internal/pycore_runtime.h"
#include "frameobject.h"
#include "structmember.h"
#if PY_VERSION_HEX >= 0x030a0000
#include "internal/pycore_moduleobject.h"
#endif
#if PY_VERSION_HEX >= 0x030b0000
#include "internal/pycore_dict.h"
#include "internal/pycore_frame.h"
#include "internal/pycore_object.h"
#endif
#if PY_VERSION_HEX >= 0x030d0000
#include "internal/pycore_tstate.h"
#endif
#if PY_VERSION_HEX >= 0x030e0000
#include "internal/pycore_interpframe.h"
#include "internal/pycore_debug_offsets.h"
#include "internal/pycore_genobject.h"
#endif

/* The bit position of a one-bit field of PyASCIIObject.state. */
#define DEFINE_SHIFT(name, member)                                          \
    static size_t name(void)                                                \
    {                                                                       \
        PyASCIIObject object;                                               \
        unsigned bits;                                                      \
        memset(&object, 0, sizeof object);                                  \
        object.state.member = 1;                                            \
        memcpy(&bits, (char *)&object + offsetof(PyASCIIObject, state), 4); \
        return (size_t)__builtin_ctz(bits);                                 \
    }
DEFINE_SHIFT(kind_shift, kind)
DEFINE_SHIFT(compact_shift, compact)
DEFINE_SHIFT(ascii_shift, ascii)

#if PY_VERSION_HEX >= 0x030b0000
#define GENERATOR_FRAME_IS_POINTER 0
#else
#define GENERATOR_FRAME_IS_POINTER 1
#endif

#if PY_VERSION_HEX >= 0x030b0000 && PY_VERSION_HEX < 0x030d0000
#define CFRAME_FRAME offsetof(_PyCFrame, current_frame)
#endif

/* Objects/obmalloc.c up to 3.11, Include/internal/pycore_obmalloc.h after. */
#if PY_VERSION_HEX < 0x030c0000
struct pool_header {
    union { unsigned char *_padding; unsigned int count; } ref;
    unsigned char *freeblock;
    struct pool_header *nextpool, *prevpool;
    unsigned int arenaindex, szidx, nextoffset, maxnextoffset;
};
struct arena_object {
    uintptr_t address;
    unsigned char *pool_address;
    unsigned int nfreepools, ntotalpools;
    struct pool_header *freepools;
    struct arena_object *nextarena, *prevarena;
};
#define ALIGNMENT 16
#define POOL_OVERHEAD sizeof(struct pool_header)
#if PY_VERSION_HEX < 0x030a0000
#define ARENA_SIZE (256 << 10)
#define POOL_SIZE (4 << 10)
#else
#define ARENA_SIZE (1 << 20)
#define POOL_SIZE (16 << 10)
#endif
#else
#include "internal/pycore_obmalloc.h"
#if PY_VERSION_HEX < 0x030d0000
#define OBMALLOC_IS_POINTER 0
#else
#define OBMALLOC_IS_POINTER 1
#endif
#endif

/* Objects/dict-common.h up to 3.10. */
#if PY_VERSION_HEX < 0x030b0000
struct _dictkeysobject {
    Py_ssize_t dk_refcnt, dk_size;
    void *dk_lookup;
    Py_ssize_t dk_usable, dk_nentries;
    char dk_indices[];
};
typedef struct {
    Py_hash_t me_hash;
    PyObject *me_key, *me_value;
} PyDictKeyEntry;
#endif

/* Objects/moduleobject.c in 3.9. */
#if PY_VERSION_HEX < 0x030a0000
typedef struct {
    PyObject_HEAD
    PyObject *md_dict;
    struct PyModuleDef *md_def;
    void *md_state;
    PyObject *md_weaklist, *md_name;
} PyModuleObject;
#endif

/* The words before an object (Objects/object.c, Include/internal/pycore_object.h): the dict of its
 * attributes, or their values. In 3.12 both share a word, and a set low bit says "values",
 * which then begin one byte further on. */
#if PY_VERSION_HEX >= 0x030d0000
#define MANAGED_DICT_AT (long long)MANAGED_DICT_OFFSET
#define MANAGED_WEAKREF_AT (long long)MANAGED_WEAKREF_OFFSET
#elif PY_VERSION_HEX >= 0x030c0000
#define MANAGED_DICT_AT (-3 * (long long)sizeof(PyObject *))
#define MANAGED_VALUES_AT MANAGED_DICT_AT
#define MANAGED_WEAKREF_AT (long long)MANAGED_WEAKREF_OFFSET
#define MANAGED_DICT_TAG 1
#elif PY_VERSION_HEX >= 0x030b0000
#define MANAGED_DICT_AT (-3 * (long long)sizeof(PyObject *))
#define MANAGED_VALUES_AT (-4 * (long long)sizeof(PyObject *))
#endif
