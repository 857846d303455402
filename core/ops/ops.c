// ops.c: the table of all operators, made once from the .def files; lookup by name; binding of call
// arguments to a schema.
#include "core/ops/ops.h"

#include <assert.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "core/base/map.h"
#include "core/base/vec.h"
#include "core/ops/meta.h"
#include "core/ops/out.h"

#define REASON(id, name, text) static const char hole_##id[] = name;
#include "core/ops/hole.def"
#undef REASON

const char *const hole_names[HOLE_count] = {
#define REASON(id, name, text) [HOLE_##id] = hole_##id,
#include "core/ops/hole.def"
#undef REASON
};
const char *const hole_texts[HOLE_count] = {
#define REASON(id, name, text) [HOLE_##id] = text,
#include "core/ops/hole.def"
#undef REASON
};

// Why an op has no reference kernel although it has a meta function.
static const char *const opaque[OP_count] = {
#define OPAQUE(op, reason) [OP_##op] = hole_##reason,
#include "core/ops/opaque.def"
#undef OPAQUE
};
static const char parts[] = "made of other ops, whose metadata is asked";

typedef struct Row {
    const char *schema; // PyTorch's text
    unsigned tags;      // OPT_* that the schema does not tell
    MetaFn *meta;       // NULL: hole
    const char *hole;   // reason, NULL if there is a meta
} Row;

#define HOLE(reason) NULL, hole_##reason
#define PARTS        NULL, parts
static const Row rows[OP_count] = {
#define OP(id, schema, tags, ...) [OP_##id] = {schema, tags, __VA_ARGS__},
#include "core/ops/ops.def"
#undef OP
};

// Built by the first lookup and constant from then on.
static struct {
    Arena arena;
    const Op *ops[OP_count];
    Map by_name;        // aten.add.Tensor -> Op *
    Map packets;        // aten.add -> first OpId
    int next[OP_count]; // next overload of the same packet, OP_none at the end
} table;
static pthread_once_t table_once = PTHREAD_ONCE_INIT;

// Namespaces that are not torch.ops: Python's own functions on numbers.
static bool plain_namespace(const char *ns) {
    return strcmp(ns, "_operator") == 0 || strcmp(ns, "torch") == 0 || strcmp(ns, "math") == 0;
}

static void add_to_packet(const Op *op) {
    const char *packet = arena_printf(&table.arena, "%s.%s", op->ns, op->name);
    MapEntry *e = map_at(&table.packets, packet);
    if (!e->i) {
        e->i = op->id;
        return;
    }
    int last = (int)e->i;
    while (table.next[last])
        last = table.next[last];
    table.next[last] = op->id;
}

static void build_table(void) {
    table.by_name.arena = &table.arena;
    table.packets.arena = &table.arena;
    Diag diag = {.arena = &table.arena};
    for (int id = OP_none + 1; id < OP_count; id++) {
        Op *op = op_parse_schema(&table.arena, rows[id].schema, &diag);
        if (!op)
            die("core/ops: %s in %s", diag_first(&diag), rows[id].schema);
        op->id = (OpId)id;
        op->tags |= rows[id].tags;
        op->meta = rows[id].meta;
        op->hole = rows[id].hole;
        op->parts = op->hole == parts;
        op->opaque = opaque[id] ? opaque[id] : op->parts ? NULL : op->hole;
        if (plain_namespace(op->ns))
            op->qualname = arena_printf(&table.arena, "%s.%s", op->ns, op->name);
        table.ops[id] = op;
        const char *key =
            plain_namespace(op->ns) ? op->qualname : op->qualname + strlen("torch.ops.");
        assert(!map_get(&table.by_name, key));
        map_put(&table.by_name, key, op);
        add_to_packet(op);
    }
}

const Op *op_at(OpId id) {
    pthread_once(&table_once, build_table);
    assert(id > OP_none && id < OP_count);
    return table.ops[id];
}

const Op *op_find(const char *qualname) {
    pthread_once(&table_once, build_table);
    if (str_starts(qualname, "torch.ops."))
        qualname += strlen("torch.ops.");
    else if (str_starts(qualname, "operator."))
        return op_find_overload("_operator", qualname + strlen("operator."), "default");
    const Op *op = map_get(&table.by_name, qualname);
    const char *dot = strchr(qualname, '.'), *last = strrchr(qualname, '.');
    char ns[32], name[96];
    if (op || !dot || dot == last || dot - qualname >= (int)sizeof ns ||
        last - dot >= (int)sizeof name)
        return op;
    snprintf(ns, sizeof ns, "%.*s", (int)(dot - qualname), qualname);
    snprintf(name, sizeof name, "%.*s", (int)(last - dot - 1), dot + 1);
    return op_find_overload(ns, name, last + 1);
}

const Op *op_find_overload(const char *ns, const char *name, const char *overload) {
    const Op *all[64];
    int n = op_packet(ns, name, all, COUNT(all));
    for (int i = 0; i < n && i < COUNT(all); i++)
        if (strcmp(all[i]->overload, overload) == 0)
            return all[i];
    const Op *op = NULL;
    for (int i = 0; i < n && i < COUNT(all) && !op; i++)
        op = out_find(all[i], overload);
    return op;
}

int op_packet(const char *ns, const char *name, const Op *out[], int max) {
    pthread_once(&table_once, build_table);
    char packet[128];
    size_t ns_len = strlen(ns), name_len = strlen(name);
    if (ns_len + name_len + 2 > sizeof packet)
        return 0;
    memcpy(packet, ns, ns_len);
    packet[ns_len] = '.';
    memcpy(packet + ns_len + 1, name, name_len + 1);
    int n = 0;
    for (int id = (int)map_get_int(&table.packets, packet, 0); id && n < max; id = table.next[id])
        out[n++] = table.ops[id];
    return n;
}

int op_arg_index(const Op *op, const char *name) {
    for (int i = 0; i < op->n_args; i++)
        if (strcmp(op->args[i].name, name) == 0)
            return i;
    return -1;
}

bool op_meta(MetaCtx *m, const Op *op, const Value *args, Value *out) {
    *out = val_none();
    if (op->meta)
        return (m->checked || op_check(m, op, args)) && op->meta(m, op, args, out);
    diag_error(m->diag, m->at, "%s.%s.%s: %s", op->ns, op->name, op->overload,
               op->hole ? op->hole : "no meta function");
    return false;
}
