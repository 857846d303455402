// failure.c: how a rung fails, in words; whether two failures are of the same kind.
#include <ctype.h>
#include <math.h>
#include <string.h>

#include "core/debug/probe.h"

enum { CLASS_BYTES = 160 };

static const char *const kind_names[] = {
    [FAIL_none] = "none",       [FAIL_accuracy] = "accuracy", [FAIL_crash] = "crash",
    [FAIL_compile] = "compile", [FAIL_error] = "error",       [FAIL_hang] = "hang",
};

const char *failure_kind_name(FailureKind k) {
    return kind_names[k];
}

int failure_kind_find(const char *name) {
    return str_index(name, kind_names, COUNT(kind_names));
}

bool failure_matches(FailureKind wanted, const Failure *f) {
    if (wanted == FAIL_none)
        return f->kind != FAIL_none;
    if (f->kind == FAIL_error && (wanted == FAIL_crash || wanted == FAIL_compile))
        return (f->stage == STAGE_run) == (wanted == FAIL_crash);
    return f->kind == wanted;
}

static bool same_text(const char *a, const char *b) {
    return !strcmp(a ? a : "", b ? b : "");
}

// out, after, grad: without the number.
static bool same_kind_of_result(const char *a, const char *b) {
    size_t n = strcspn(a ? a : "", "0123456789");
    return n == strcspn(b ? b : "", "0123456789") && !strncmp(a ? a : "", b ? b : "", n);
}

bool failure_same(const Failure *a, const Failure *b) {
    if (a->kind != b->kind)
        return false;
    switch (a->kind) {
    case FAIL_none:
        return true;
    case FAIL_accuracy:
        if (a->stage != b->stage || a->is_nan != b->is_nan || a->sign != b->sign)
            return false;
        return same_text(a->result, b->result) ? a->element == b->element
                                               : same_kind_of_result(a->result, b->result);
    case FAIL_hang:
        return a->stage == b->stage;
    case FAIL_crash:
    case FAIL_compile:
    case FAIL_error:
        break;
    }
    return a->stage == b->stage && same_text(a->error_class, b->error_class);
}

const char *error_class_of(Arena *a, const char *message) {
    char out[CLASS_BYTES];
    int n = 0;
    for (const char *p = message; *p && *p != '\n' && n < CLASS_BYTES - 2; p++) {
        if (*p == '\'' || *p == '"') {
            const char *close = strchr(p + 1, *p);
            out[n++] = '_';
            if (!close)
                break;
            p = close;
        } else if (isdigit((unsigned char)*p)) {
            while (isalnum((unsigned char)p[1]) || (p[1] == '.' && isdigit((unsigned char)p[2])))
                p++;
            out[n++] = '#';
        } else {
            out[n++] = *p;
        }
    }
    out[n] = '\0';
    return arena_strdup(a, out);
}

void failure_print(Buf *out, const Failure *f) {
    if (f->kind == FAIL_accuracy)
        buf_printf(out, "accuracy: %s is wrong from element %lld on: %.9g, expected %.9g",
                   f->result, (long long)f->element, isnan(f->got) ? (double)NAN : f->got,
                   isnan(f->want) ? (double)NAN : f->want); // the sign of a NaN says nothing
    else if (f->kind == FAIL_none)
        buf_puts(out, "does not fail");
    else
        buf_printf(out, "%s in stage %s: %s", kind_names[f->kind], stage_info[f->stage].name,
                   f->message);
}

void failure_json(JsonOut *j, const char *key, const Failure *f) {
    json_open(j, key, '{');
    json_put_str(j, "kind", kind_names[f->kind]);
    if (f->kind != FAIL_none)
        json_put_str(j, "stage", stage_info[f->stage].name);
    if (f->pass && *f->pass)
        json_put_str(j, "pass", f->pass);
    if (f->kind == FAIL_accuracy) {
        json_put_str(j, "result", f->result);
        json_put_int(j, "element", f->element);
        json_put_int(j, "sign", f->sign);
        json_put_bool(j, "nan", f->is_nan);
        json_put_float(j, "got", f->got);
        json_put_float(j, "want", f->want);
        json_put_float(j, "exact", f->exact);
    } else if (f->kind != FAIL_none) {
        json_put_str(j, "class", f->error_class);
        json_put_str(j, "message", f->message);
        json_put_str(j, "where", f->where);
    }
    json_close(j, '}');
}
