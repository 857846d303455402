// pickle.h: inside core/load: Python pickles as data. Nothing is imported and nothing is called: a
// call is a node that names its function, an object is a node that names its class.
#ifndef CORE_LOAD_PICKLE_H
#define CORE_LOAD_PICKLE_H

#include "core/base/diag.h"

typedef enum PickleKind {
    PICKLE_none,
    PICKLE_bool,
    PICKLE_int,
    PICKLE_float,
    PICKLE_str,     // also bytes
    PICKLE_tuple,
    PICKLE_list,
    PICKLE_set,
    PICKLE_dict,    // items: key, value, key, value …
    PICKLE_global,  // a name of a module: `torch._utils._rebuild_tensor_v2`
    PICKLE_call,    // items[0] the function or class, then its arguments; SETITEMS add to `extra`
    PICKLE_persid   // items[0]: what persistent_load would get
} PickleKind;

typedef struct Pickle Pickle;
struct Pickle {
    PickleKind kind;
    union {
        bool b;
        int64_t i;      // longer integers saturate
        double f;
        const char *s;  // of texts and globals, terminated; a text with a zero byte ends there
    };
    size_t len;         // of a text
    Pickle **items;
    int n, cap;
    Pickle *extra;      // of a call: what was put into the object afterwards, a dict or a list
    Pickle *state;      // of a call: what BUILD gave it
};

// The object of a pickle of protocol 2 to 5; NULL and an error if the bytes are none. Objects may
// contain themselves: walk with a limit.
Pickle *pickle_parse(Arena *a, Str bytes, const char *name, Diag *d);
const char *pickle_str(const Pickle *p);                    // text of a str or global, else NULL
bool pickle_calls(const Pickle *p, const char *function);   // a call of that global
// Item i of a tuple or list, argument i of a call; NULL if there is none.
const Pickle *pickle_item(const Pickle *p, int i);
// Entries of a dict, or of an object made as one (collections.OrderedDict()): key, value, key, …
int pickle_entries(const Pickle *p, Pickle *const **out);

#endif
