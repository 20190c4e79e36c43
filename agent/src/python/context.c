/* context.c - labels that follow threads and asyncio tasks.
 *
 * The Python package stores the current labels as one str in a ContextVar and passes the
 * variable to the agent. A sample reads the variable's value in the calling thread's context:
 * whatever switches contexts (asyncio, copy_context, a greenlet) also switches labels, at
 * no cost. The context is a hash array mapped trie, immutable except for its root:
 *
 *   PyContext -> PyHamtObject -> node; 5 bits of the hash select the branch at each level
 *   bitmap node     head | ob_size | bitmap (4 of 8 bytes) | key, value | key, value ...
 *                   entry number = number of set bits below this one; key NULL: value is the next node
 *   array node      head | next node [32]
 *   collision node  head | ob_size | hash (4 of 8 bytes) | key, value | key, value ...
 *
 * The str holds pairs: key US value RS key US value (ASCII unit and record separators).
 */
#include "python/python.h"
#include "python/state.h"
#include "segment/intern.h"
#include "tidemark.h"

#define HEAD_BYTES 16u           /* PyObject_HEAD */
#define VARIABLE_HEAD_BYTES 24u  /* PyObject_VAR_HEAD */
#define ENTRIES_OFFSET 32u
#define DEEPEST_NODE 8u
#define WIDEST_COLLISION 64u
#define UNIT_SEPARATOR '\x1f'
#define RECORD_SEPARATOR '\x1e'
#define LONGEST_LABELS 2000u
#define MOST_VARIABLES 4u

/* One for each interpreter that imported the package; the oldest is evicted. */
static struct {
    const void *_Atomic variable;
    uint32_t hash;
} variables[MOST_VARIABLES];
static _Atomic uint32_t variables_used;

void tidemark_set_label_variable(const void *variable, int64_t hash)
{
    uint32_t index = atomic_fetch_add(&variables_used, 1) % MOST_VARIABLES;
    int32_t folded = (int32_t)(uint32_t)hash ^ (int32_t)(hash >> 32); /* as hamt.c folds it */
    atomic_store(&variables[index].variable, NULL);
    variables[index].hash = (uint32_t)(folded == -1 ? -2 : folded);
    atomic_store(&variables[index].variable, variable);
}

static int is_node(const char *node, const char *type_name)
{
    const char *name = tm_pointer_at(tm_type_of(node), tm_python.layout.type_name);
    return name && strcmp(name, type_name) == 0;
}

static const char *find_value(const char *node, const void *variable, uint32_t hash)
{
    for (unsigned depth = 0, shift = 0; node && depth < DEEPEST_NODE; depth++, shift += 5) {
        uint32_t place = hash >> shift & 31;
        if (is_node(node, "hamt_bitmap_node")) {
            uint32_t bitmap = (uint32_t)tm_int_at(node, VARIABLE_HEAD_BYTES), bit = 1u << place;
            if (!(bitmap & bit))
                return NULL;
            const char *entry = node + ENTRIES_OFFSET + 16 * (size_t)__builtin_popcount(bitmap & (bit - 1));
            const char *key = tm_pointer_at(entry, 0);
            if (key)
                return key == variable ? tm_pointer_at(entry, 8) : NULL;
            node = tm_pointer_at(entry, 8);
        } else if (is_node(node, "hamt_array_node")) {
            node = tm_pointer_at(node + HEAD_BYTES + 8 * place, 0);
        } else if (is_node(node, "hamt_collision_node")) {
            uint64_t words = tm_word_at(node, tm_python.layout.variable_size);
            for (uint64_t i = 0; i + 1 < words && i < 2 * WIDEST_COLLISION; i += 2)
                if (tm_pointer_at(node + ENTRIES_OFFSET + 8 * i, 0) == variable)
                    return tm_pointer_at(node + ENTRIES_OFFSET + 8 * i, 8);
            return NULL;
        } else {
            return NULL;
        }
    }
    return NULL;
}

const void *tm_python_context(void)
{
    if (!atomic_load_explicit(&variables_used, memory_order_relaxed))
        return NULL;
    const struct tm_python_layout *layout = &tm_python.layout;
    const char *thread = tm_python_hold_thread();
    if (!thread || atomic_load_explicit(&tm_python.trust, memory_order_relaxed) != TM_TRUST_PROVEN)
        return NULL;
    const char *context = tm_pointer_at(thread, layout->thread_context);
    const char *trie = context ? tm_pointer_at(context, layout->context_variables) : NULL;
    const char *root = trie && tm_word_at(trie, layout->hamt_count) ? tm_pointer_at(trie, layout->hamt_root) : NULL;
    for (unsigned i = 0; root && i < MOST_VARIABLES; i++) {
        const void *variable = atomic_load(&variables[i].variable);
        const char *value = variable ? find_value(root, variable, variables[i].hash) : NULL;
        if (value && tm_type_of(value) == tm_python.unicode_type && tm_word_at(value, layout->unicode_length))
            return value;
    }
    return NULL;
}

uint32_t tm_python_label(const void *context, uint32_t parent)
{
    char text[LONGEST_LABELS];
    size_t length = tm_python_text(context, text, sizeof text);
    uint32_t label = parent;
    for (const char *at = text, *end = text + length; at < end;) {
        const char *pair_end = memchr(at, RECORD_SEPARATOR, (size_t)(end - at));
        if (!pair_end)
            pair_end = end;
        const char *value = memchr(at, UNIT_SEPARATOR, (size_t)(pair_end - at));
        if (value)
            label = tm_intern_label(label, tm_intern_string(at, (size_t)(value - at)),
                                    tm_intern_string(value + 1, (size_t)(pair_end - value - 1)));
        at = pair_end + 1;
    }
    return label;
}
