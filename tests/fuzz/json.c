// json.c: what parses must print, parse again and print the same.
#include "tests/fuzz/fuzz.h"

#include <string.h>

enum { WRITER_DEPTH = 60 };

static int depth(const Json *j) {
    int most = 0;
    for (const Json *c = j->child; c; c = c->next) {
        int d = depth(c);
        most = d > most ? d : most;
    }
    return most + 1;
}

static void print(JsonOut *out, const Json *j) {
    bool array = j->kind == JSON_array;
    switch (j->kind) {
    case JSON_null:
        json_put_str(out, j->key, NULL);
        break;
    case JSON_bool:
        json_put_bool(out, j->key, j->b);
        break;
    case JSON_int:
        json_put_int(out, j->key, j->i);
        break;
    case JSON_float:
        json_put_float(out, j->key, j->f);
        break;
    case JSON_string:
        json_put_str(out, j->key, j->s);
        break;
    case JSON_array:
    case JSON_object:
        json_open(out, j->key, array ? '[' : '{');
        for (const Json *c = j->child; c; c = c->next)
            print(out, c);
        json_close(out, array ? ']' : '}');
    }
}

void fuzz_json(Str input) {
    Arena a = {0};
    Diag d = {.arena = &a};
    Json *j = json_parse(&a, input, "input", &d);
    FUZZ_CHECK((j != NULL) == (d.errors == 0));
    for (int i = 0; i < d.n; i++) {
        FUZZ_CHECK(d.at[i].line > 0 && d.at[i].col > 0);
        FUZZ_CHECK((size_t)d.at[i].col <= input.len + 1);
    }
    Buf messages = {.arena = &a};
    diag_print_all(&messages, &d);
    if (j && depth(j) < WRITER_DEPTH) {
        Buf first = {.arena = &a}, second = {.arena = &a};
        print(&(JsonOut){.out = &first}, j);
        Json *again = json_parse(&a, (Str){first.data, first.len}, "again", &d);
        FUZZ_CHECK(again);
        print(&(JsonOut){.out = &second, .pretty = false}, again);
        FUZZ_CHECK(strcmp(buf_str(&first), buf_str(&second)) == 0);
    }
    arena_free(&a);
}
