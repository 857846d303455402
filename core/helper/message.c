// message.c: the fields of a request or reply.
#include <string.h>

#include "core/helper/internal.h"

static Field *add(Message *m, const char *name, FieldKind kind) {
    vec_push(m->arena, &m->fields, (Field){.name = arena_strdup(m->arena, name), .kind = kind});
    return &vec_last(&m->fields);
}

void message_int(Message *m, const char *name, int64_t v) {
    add(m, name, FIELD_int)->i = v;
}

void message_float(Message *m, const char *name, double v) {
    add(m, name, FIELD_float)->f = v;
}

void message_text(Message *m, const char *name, const char *v) {
    size_t len = strlen(v);
    add(m, name, FIELD_text)->text = (Str){arena_strndup(m->arena, v, len), len};
}

void message_tensor(Message *m, const char *name, const Tensor *v) {
    add(m, name, FIELD_tensor)->tensor = tensor_keep(v);
}

const Field *message_find(const Message *m, const char *name) {
    for (int i = 0; i < m->fields.n; i++)
        if (!strcmp(m->fields.at[i].name, name))
            return &m->fields.at[i];
    return NULL;
}

int64_t message_get_int(const Message *m, const char *name, int64_t fallback) {
    const Field *f = message_find(m, name);
    return f && f->kind == FIELD_int ? f->i : fallback;
}

const char *message_get_text(const Message *m, const char *name, const char *fallback) {
    const Field *f = message_find(m, name);
    return f && f->kind == FIELD_text ? f->text.ptr : fallback;
}

void message_value(Message *m, const char *name, const RtValue *v) {
    if (v->kind == RT_tensor)
        message_tensor(m, name, &v->tensor);
    else if (v->kind == RT_int || v->kind == RT_bool)
        message_int(m, name, v->kind == RT_int ? v->i : v->b);
    else if (v->kind == RT_float)
        message_float(m, name, v->f);
    else
        message_text(m, name, "");
}

void message_drop(Message *m) {
    for (int i = 0; i < m->fields.n; i++)
        if (m->fields.at[i].kind == FIELD_tensor)
            tensor_drop(&m->fields.at[i].tensor);
    m->fields.n = 0;
}
