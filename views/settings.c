// settings.c: under which settings something came about, in one line: what would run it, what kind
// of graph it is, whether its sizes are symbols, and all that is not as PyTorch has it by itself.
#include "views/brief.h"

#include <string.h>

static const char *symbols_of(Arena *a, const Graph *g) {
    Buf b = {.arena = a};
    GRAPH_EACH (g, n) {
        if (n->op != FX_placeholder)
            break;
        if (n->val.kind == VAL_sym)
            buf_printf(&b, "%s%s", b.len ? " " : "", sym_str(a, n->val.sym));
    }
    return buf_str(&b);
}

typedef struct Out {
    Buf b;
    int n; // settings and decisions told
} Out;

static void put_override(void *ctx, DecisionKind kind, const char *key, bool result) {
    Out *o = ctx;
    buf_printf(&o->b, " · %s %s %s", decision_kind_name(kind), key, result ? "on" : "off");
    o->n++;
}

static void put_aliases(Out *o, Session *s, const Unit *u, Arena *a) {
    if (!u->aliases)
        return;
    GRAPH_EACH (u->loaded->graph, n) {
        const char *of = n->op == FX_placeholder ? session_alias_of(s, n->target) : "";
        if (!*of)
            continue;
        buf_printf(&o->b, " · alias %s %s", n->target, arena_strdup(a, of));
        o->n++;
    }
}

const char *brief_settings(Arena *a, Session *s, int unit) {
    Out o = {.b.arena = a};
    const Unit *u = pipeline_unit(session_pipeline(s), unit);
    Backend backend = session_backend(s);
    buf_puts(&o.b, backend_info[backend].name);
    if (backend == BACKEND_full && session_toolchain(s))
        buf_printf(&o.b, " %s", session_toolchain(s)->name);
    buf_printf(&o.b, " · %s", u->parent || u->forward ? "training" : u->kind);
    const char *symbols = symbols_of(a, u->loaded->graph);
    buf_printf(&o.b, " · %s%s", *symbols ? "dynamic " : "static sizes", symbols);
    if (session_device_name(s))
        buf_printf(&o.b, " · device %s", session_device_name(s));
    for (int i = 0; i < settings_count(); i++) {
        SettingInfo now = settings_at(s, i, a);
        if (!strcmp(now.value, settings_at(NULL, i, a).value))
            continue;
        buf_printf(&o.b, " · %s=%s", now.name, now.value);
        o.n++;
    }
    decide_override_each(session_overrides(s), put_override, &o);
    put_aliases(&o, s, u, a);
    if (!o.n)
        buf_puts(&o.b, " · all settings and decisions by default");
    return buf_str(&o.b);
}
