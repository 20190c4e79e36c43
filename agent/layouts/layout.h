/* layout.h - where CPython keeps what a stack walk needs, one table per minor version.
 *
 * The tables (python_3_*.h) are generated from the interpreters' own headers by
 * generate.py. Offsets are in bytes from the start of the structure named first
 * in the field's name. From 3.13 on, an interpreter publishes most of them itself
 * (_Py_DebugOffsets, the first bytes of _PyRuntime); these take precedence over the table.
 */
#ifndef TIDEMARK_LAYOUT_H
#define TIDEMARK_LAYOUT_H

#include <stdint.h>

#define TM_NO_OFFSET 0xffffu

enum tm_line_table {
    TM_LINES_LNOTAB = 0,    /* <= 3.9: (address delta, signed line delta) pairs, line starts */
    TM_LINES_RANGES = 1,    /* 3.10: PEP 626 ranges, -128 means "no line" */
    TM_LINES_LOCATIONS = 2, /* >= 3.11: Objects/locations.md */
};

struct tm_python_layout {
    uint16_t minor;
    uint16_t line_table; /* enum tm_line_table */

    /* _PyRuntimeState */
    uint16_t runtime_preinitialized; /* int: not 0 once the interpreter's code has run */

    /* PyThreadState */
    uint16_t thread_interpreter;
    uint16_t thread_frame; /* the innermost frame; 3.11, 3.12: the _PyCFrame that holds it */
    uint16_t thread_cframe_frame; /* within that _PyCFrame; TM_NO_OFFSET elsewhere */
    uint16_t thread_id;
    uint16_t thread_context;

    /* PyInterpreterState: the entries of its method cache (src/python/names.c) */
    uint32_t method_cache; /* 0 up to 3.9: its cache is indexed by the name's hash */
    uint16_t method_cache_places;
    uint16_t method_cache_place; /* bytes of one entry */
    uint16_t method_cache_name;  /* within an entry */

    /* PyFrameObject up to 3.10, _PyInterpreterFrame after */
    uint16_t frame_code;        /* f_code, f_executable */
    uint16_t frame_previous;    /* f_back, previous */
    uint16_t frame_instruction; /* f_lasti (int), prev_instr or instr_ptr (pointer) */
    uint16_t frame_owner;       /* TM_NO_OFFSET up to 3.10 */
    uint16_t frame_is_entry;    /* 3.11: a bool, true if the evaluator was called for it; TM_NO_OFFSET elsewhere */
    uint16_t frame_first_shim_owner; /* frames with this owner or a higher one have no Python code of their own */

    /* PyCodeObject */
    uint16_t code_name;
    uint16_t code_qualified_name; /* TM_NO_OFFSET up to 3.10 */
    uint16_t code_file;
    uint16_t code_first_line;
    uint16_t code_lines;           /* co_lnotab, co_linetable */
    uint16_t code_bytes;           /* up to 3.10 a pointer to bytes, after the instructions themselves */
    uint16_t code_first_traceable; /* instruction index; TM_NO_OFFSET up to 3.10 */

    /* PyASCIIObject, PyCompactUnicodeObject, PyUnicodeObject, PyBytesObject, PyVarObject */
    uint16_t unicode_length;
    uint16_t unicode_state;         /* 32 bits; the shifts count within them */
    uint16_t unicode_kind_shift;    /* 3 bits: 1, 2 or 4 bytes per code point */
    uint16_t unicode_compact_shift; /* 1 bit: the text follows the structure */
    uint16_t unicode_ascii_shift;   /* 1 bit: the structure is PyASCIIObject */
    uint16_t unicode_ascii_size;
    uint16_t unicode_compact_size;
    uint16_t unicode_pointer;
    uint16_t bytes_data;
    uint16_t variable_size; /* ob_size */

    /* PyContext, PyHamtObject and its nodes, PyTypeObject, PyLongObject */
    uint16_t context_variables;
    uint16_t hamt_root;
    uint16_t hamt_count;
    uint16_t long_digit;
    uint16_t type_name;
};

/* The part of _Py_DebugOffsets that is used, by slot (8-byte words from its start). */
struct tm_published_layout {
    uint16_t minor;
    uint16_t free_threaded;
    uint16_t block_size; /* bytes of the whole block: sizeof(_Py_DebugOffsets) */
    uint16_t thread_interpreter;
    uint16_t thread_current_frame;
    uint16_t thread_id;
    uint16_t frame_previous;
    uint16_t frame_executable;
    uint16_t frame_instruction;
    uint16_t frame_owner;
    uint16_t code_file;
    uint16_t code_name;
    uint16_t code_qualified_name;
    uint16_t code_lines;
    uint16_t code_first_line;
    uint16_t code_bytes;
    uint16_t type_name;
    uint16_t bytes_size;
    uint16_t bytes_data;
    uint16_t unicode_state;
    uint16_t unicode_length;
    uint16_t unicode_ascii_size;
};

/* What is known about one minor version; versions.h lists them all. */
struct tm_python_version {
    const struct tm_python_layout *layout;
    const struct tm_published_layout *published; /* NULL: the version publishes no offsets */
};

/* Offset in _PyRuntimeState of an int that is not 0 once the interpreter's code has run, in the versions
 * that export no Py_Version: core_initialized in 3.9, preinitialized in 3.10 (pycore_runtime.h). */
#define TM_BEGUN_WITHOUT_VERSION 8

#endif
