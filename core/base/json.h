// json.h: JSON over cJSON, keeping 64-bit integers exact and reading PyTorch's "Infinity",
// "-Infinity" and "NaN" strings as numbers where a number is asked for. Reading is forgiving in a
// sticky way: asking a missing or mistyped member gives NULL / a zero value. Bare NaN and Infinity,
// as Python writes them, are read too. Of members with the same key json_get gives the first.
#ifndef CORE_BASE_JSON_H
#define CORE_BASE_JSON_H

#include "core/base/diag.h"

typedef enum JsonKind {
    JSON_null,
    JSON_bool,
    JSON_int,
    JSON_float,
    JSON_string,
    JSON_array,
    JSON_object
} JsonKind;

typedef struct Json Json;
struct Json {
    JsonKind kind;
    const char *key;        // in an object, else NULL
    union {
        bool b;
        int64_t i;          // exact; a number with '.', 'e' or out of range is a float
        double f;
        const char *s;      // no embedded NUL (refused on reading)
    };
    Json *child;            // first element or member
    Json *next;             // sibling
    int n;                  // number of children
};

// Parses a whole document; NULL and an error with line and column on bad text. Nesting limit 512.
// name is used in messages. text need not be terminated.
Json *json_parse(Arena *a, Str text, const char *name, Diag *d);
Json *json_get(const Json *object, const char *key);
Json *json_at(const Json *array, int i);                    // walks: use ->child, ->next in loops
const char *json_str(const Json *j, const char *fallback);
int64_t json_int(const Json *j, int64_t fallback);
double json_float(const Json *j, double fallback);
bool json_bool(const Json *j, bool fallback);

// Writer: a stack of open containers behind a Buf; commas are its business. pretty: 1 member a
// line. Spaced as Python's json.dumps, with indent=2 if pretty. `JsonOut j = {.out = &buf};`
typedef struct JsonOut {
    Buf *out;
    bool pretty;
    int depth;
    bool first[64];         // at each depth: nothing written yet
} JsonOut;
void json_open(JsonOut *j, const char *key, char bracket); // '{' or '['; key NULL in arrays, on top
void json_close(JsonOut *j, char bracket);
void json_put_str(JsonOut *j, const char *key, const char *v);  // NULL writes null
void json_put_int(JsonOut *j, const char *key, int64_t v);
void json_put_float(JsonOut *j, const char *key, double v);     // inf and nan as PyTorch's strings
void json_put_bool(JsonOut *j, const char *key, bool v);

#endif
