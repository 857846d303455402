// fusion_rules.c: may two nodes become one? The tests stand in PyTorch's order (Scheduler.can_fuse,
// choices.py), so that the first that fails is the reason that PyTorch gives. Some are needed for
// right results, others are heuristics, which an override may pass.
#include "core/inductor/fusion.h"
#include "core/record/fault.h"

#include <stdlib.h>
#include <string.h>

// ---- Bytes that both touch at the same places.

static int64_t numel_hint(const Schedule *s, const IrLayout *l) {
    if (!l || !ir_layout_has_tensor(l))
        return l ? 1 : 0;
    return sym_size_hint(s->module->sym, sym_product(s->module->sym, l->size, l->ndim), 0);
}

static int64_t memory_dep_numel(const Schedule *s, const Dep *d) {
    if (d->indirect)
        return numel_hint(s, d->ir ? d->ir->layout : NULL);
    const Expr *n = sym_int(s->module->sym, 1);
    for (int i = 0; i < d->n_vars; i++)
        if (expr_has(d->index, d->vars[i]))
            n = sym_mul(s->module->sym, n, d->sizes[i]);
    return sym_size_hint(s->module->sym, n, 0);
}

int64_t dep_bytes(const Schedule *s, const Dep *d) {
    if (d->kind == DEP_weak)
        return 1;
    const IrLayout *l = d->ir ? d->ir->layout : NULL;
    if (!l || !ir_layout_has_tensor(l))
        return 0;
    int64_t n = d->kind == DEP_star ? numel_hint(s, l) : memory_dep_numel(s, d), bytes = 0;
    return __builtin_mul_overflow(n, dtype_info[l->dtype].bytes, &bytes) ? INT64_MAX / 4 : bytes;
}

static int by_hash(const void *a, const void *b) {
    const DepBytes *x = a, *y = b;
    return x->hash < y->hash ? -1 : x->hash > y->hash;
}

static FuseInfo *info_with_deps(Fusion *f, SchedNode *n) {
    FuseInfo *i = fuse_info(f, n);
    if (i->deps)
        return i;
    i->deps = ARENA_ARRAY(f->arena, n->reads.n + n->writes.n + 1, DepBytes);
    i->n_deps = 0;
    for (int k = 0; k < n->reads.n + n->writes.n; k++) {
        const Dep *d = k < n->reads.n ? &n->reads.at[k] : &n->writes.at[k - n->reads.n];
        i->deps[i->n_deps++] = (DepBytes){d->hash, -1, d};
    }
    qsort(i->deps, (size_t)i->n_deps, sizeof *i->deps, by_hash);
    int kept = 0;
    for (int k = 0; k < i->n_deps; k++)
        if (!kept || i->deps[kept - 1].hash != i->deps[k].hash)
            i->deps[kept++] = i->deps[k];
    i->n_deps = kept;
    return i;
}

int64_t fusion_shared_bytes(Fusion *f, SchedNode *a, SchedNode *b) {
    FuseInfo *x = info_with_deps(f, a), *y = info_with_deps(f, b);
    int64_t sum = 0;
    for (int i = 0, k = 0; i < x->n_deps && k < y->n_deps;) {
        if (x->deps[i].hash < y->deps[k].hash) {
            i++;
        } else if (x->deps[i].hash > y->deps[k].hash) {
            k++;
        } else {
            if (x->deps[i].bytes < 0)
                x->deps[i].bytes = dep_bytes(f->s, x->deps[i].dep);
            if (__builtin_add_overflow(sum, x->deps[i].bytes, &sum))
                return INT64_MAX;
            i++;
            k++;
        }
    }
    return sum;
}

// ---- Memory that a fusion would keep alive.

typedef struct ReuseKey {
    Device device;
    DType dtype;
    const Expr *storage; // elements
} ReuseKey;
typedef VEC(ReuseKey) KeyVec;

static bool same_key(const ReuseKey *a, const ReuseKey *b) {
    return device_equal(a->device, b->device) && a->dtype == b->dtype && a->storage == b->storage;
}

static bool has_key(const KeyVec *v, const ReuseKey *k) {
    for (int i = 0; i < v->n; i++)
        if (same_key(&v->at[i], k))
            return true;
    return false;
}

// Inputs that only this node reads: unfused, their memory could be taken over.
static void sole_user_keys(Fusion *f, Arena *tmp, const SchedNode *n, KeyVec *out) {
    for (int i = 0; i < n->reads.n; i++) {
        const SchedBuffer *b = n->reads.at[i].made;
        if (!b || b->users.n != 1 || !ir_layout_has_tensor(b->ir->layout))
            continue;
        const IrLayout *l = b->ir->layout;
        ReuseKey k = {l->device, l->dtype, ir_layout_storage(f->sym, l)};
        if (!has_key(out, &k))
            vec_push(tmp, out, k);
    }
}

static bool increases_peak(Fusion *f, const SchedNode *a, const SchedNode *b, int64_t saved) {
    Arena tmp = {0};
    KeyVec x = {0}, y = {0};
    sole_user_keys(f, &tmp, a, &x);
    sole_user_keys(f, &tmp, b, &y);
    int64_t overhead = 0;
    bool known = true;
    for (int i = 0; i < x.n && known; i++) {
        int64_t n;
        if (!has_key(&y, &x.at[i]))
            continue;
        known = expr_int(x.at[i].storage, &n);
        if (known && __builtin_add_overflow(overhead, n, &overhead))
            overhead = INT64_MAX;
    }
    arena_free(&tmp);
    return known && overhead / 32 >= saved && overhead > 32 * saved;
}

// ---- A reader and what it reads.

static const char *renamed(const Schedule *s, const char *buf) {
    const char *name = s->mutation_renames.live ? map_get(&s->mutation_renames, buf) : NULL;
    return name ? name : buf;
}

static bool same_index_and_size(const Dep *a, const Dep *b) {
    if (a->index != b->index || a->n_vars != b->n_vars)
        return false;
    for (int i = 0; i < a->n_vars; i++)
        if (a->sizes[i] != b->sizes[i])
            return false;
    return true;
}

// A read finds in the same iteration what the write has just stored.
static bool read_follows_write(const Schedule *s, const Dep *read, const Dep *write) {
    if (read->kind == DEP_star)
        return write->mode && read->mode && strcmp(read->mode, write->mode) == 0 &&
               strcmp(renamed(s, read->buf), renamed(s, write->buf)) == 0;
    if (read->kind != DEP_memory || strcmp(renamed(s, read->buf), write->buf) != 0)
        return false;
    // Atomic writes are complete only when all iterations are.
    if (read->indirect || write->indirect || write->mode)
        return false;
    if (read->index != write->index || read->n_vars < write->n_vars)
        return false;
    for (int i = 0; i < write->n_vars; i++)
        if (read->sizes[i] != write->sizes[i])
            return false;
    return true;
}

// Loops that the write's index does not use would write the same place again; normalisation has
// dropped them.
// More iterations than places: c0 % 2 of four. Beside other terms, as in 17*c0 + c1 % 2, numbers do
// not tell: what is divided may come again.
static bool too_few_places(Sym *sym, const Dep *write) {
    SymRange range[32];
    int64_t places = 1, n;
    if (write->n_vars > COUNT(range) || expr_has_kind(write->index, SYM_modular) ||
        expr_has_kind(write->index, SYM_floordiv))
        return true;
    for (int i = 0; i < write->n_vars; i++) {
        n = sym_size_hint(sym, write->sizes[i], 4096);
        range[i] = (SymRange){0, n - 1};
        if (__builtin_mul_overflow(places, n, &places))
            return true;
    }
    SymRange r = sym_range_with(sym, write->index, write->vars, range, write->n_vars);
    return r.hi != SYM_POS_INF && r.lo != SYM_NEG_INF && !__builtin_sub_overflow(r.hi, r.lo, &n) &&
           n < places - 1;
}

static bool writes_each_place_once(const Schedule *s, const SchedNode *n, const Dep *write) {
    Sym *sym = s->module->sym;
    int count;
    SchedNode *const *singles = sched_singles(n, &count);
    for (int i = 0; i < count; i++) {
        const SchedNode *w = singles[i];
        if (!deps_have(&w->writes, write))
            continue;
        const Expr *places = sym_product(sym, write->sizes, write->n_vars);
        if (!sym_known_eq(sym, places, sym_product(sym, w->iter, w->n_iter)))
            return false;
    }
    for (int i = 0; i < write->n_vars; i++)
        if (!expr_has(write->index, write->vars[i]))
            return false;
    return !too_few_places(sym, write);
}

// d is about an output of n, a node of the schedule as it is now.
static bool has_output(const SchedNode *n, const Dep *d) {
    return sched_maker(d) == n;
}

// The buffer that a version of it, named after whatever wrote it, lies in.
static const char *real_buffer(const Schedule *s, const char *name) {
    const char *real = map_get(&s->mutation_real_name, name);
    return real ? real : name;
}

// b mutates in place exactly the element that a has just read. PyTorch 2.11 looks at reads of the
// first version alone, and so fuses a copy into a buffer written before with a read of other places
// of it: x.add_(1), then x.add_(x.t()). Such a kernel gives wrong numbers.
bool fusion_weak_dep_is_inplace(const Schedule *s, const Dep *weak, const SchedNode *a,
                                const SchedNode *b) {
    if (!has_output(a, weak))
        return false;
    const Dep *write = NULL;
    for (int i = 0; i < b->writes.n; i++)
        if (strcmp(b->writes.at[i].buf, weak->mutating_buf) == 0) {
            if (write)
                return false;
            write = &b->writes.at[i];
        }
    if (!write || write->kind != DEP_memory || write->indirect ||
        !writes_each_place_once(s, b, write))
        return false;
    const char *real = map_get(&s->mutation_real_name, weak->mutating_buf);
    for (int i = 0; real && i < a->reads.n; i++) {
        const Dep *r = &a->reads.at[i];
        if (strcmp(real_buffer(s, r->buf), real) == 0 &&
            (r->kind != DEP_memory || r->indirect || !same_index_and_size(r, write)))
            return false;
    }
    return real != NULL;
}

// What a stores where b's part x reads it.
static bool part_follows(const Schedule *s, const SchedNode *a, const SchedNode *x) {
    int n;
    SchedNode *const *parts = sched_singles(a, &n);
    for (int i = 0; i < x->unmet.n; i++) {
        const Dep *d = &x->unmet.at[i];
        for (int k = 0; k < n && d->kind == DEP_memory; k++) {
            bool follows = !has_output(parts[k], d);
            for (int j = 0; j < parts[k]->writes.n && !follows; j++)
                follows = read_follows_write(s, d, &parts[k]->writes.at[j]);
            if (!follows)
                return false;
        }
    }
    return true;
}

bool fusion_reads_follow(const Schedule *s, const SchedNode *a, const SchedNode *b) {
    int n;
    SchedNode *const *parts = sched_singles(b, &n);
    bool follow = true;
    for (int i = 0; i < n && follow; i++)
        follow = part_follows(s, a, parts[i]);
    return follow;
}

typedef VEC(const Dep *) DepRefs;

static bool refuse(Why *why, bool legal, const char *reason) {
    why->reason = reason;
    why->spoken = true;
    why->legal = legal;
    return false;
}

// Takes out the reads that find what `write` stores. PyTorch removes from the list that it walks,
// so the next read of the same buffer after a removed one is not looked at.
static void drop_matched(const Schedule *s, DepRefs *left, const Dep *write) {
    const char *name = renamed(s, write->buf);
    bool skip = false;
    for (int i = 0; i < left->n; i++) {
        if (strcmp(renamed(s, left->at[i]->buf), name) != 0)
            continue;
        bool match = !skip && read_follows_write(s, left->at[i], write);
        skip = match;
        if (match) {
            vec_remove(left, i);
            i--;
        }
    }
}

static bool is_ancestor_of_fused(const SchedNode *a, const Dep *d) {
    const SchedNode *maker = sched_maker(d);
    return maker && sched_comes_before(a, maker);
}

// Planted: b writes in place what a reads elsewhere, and they are taken for one loop.
static bool over_mutation(Fusion *f, const Dep *weak, const SchedNode *a, const SchedNode *b) {
    return fault_is_on(f->r->overrides, FAULT_fused_over_mutation) && has_output(a, weak) &&
           fault(f->r->decisions, FAULT_fused_over_mutation, b->name);
}

// What was forgotten when loops were made anew still holds: a reads other places of what b writes.
static bool keeps_forgotten(const Schedule *s, const SchedNode *a, const SchedNode *b) {
    int n;
    SchedNode *const *singles = sched_singles(b, &n);
    for (int i = 0; i < n; i++)
        for (int k = 0; k < singles[i]->order_only.n; k++) {
            const Dep *d = &singles[i]->order_only.at[k];
            if (d->kind == DEP_weak && has_output(a, d) && !fusion_weak_dep_is_inplace(s, d, a, b))
                return false;
        }
    return true;
}

static bool can_fuse_vertical(Fusion *f, const SchedNode *a, const SchedNode *b, Why *why) {
    Arena tmp = {0};
    DepRefs left = {0};
    for (int i = 0; i < b->unmet.n; i++) {
        const Dep *d = &b->unmet.at[i];
        if (d->kind != DEP_weak ||
            !(fusion_weak_dep_is_inplace(f->s, d, a, b) || over_mutation(f, d, a, b)))
            vec_push(&tmp, &left, d);
    }
    for (int i = 0; i < a->writes.n; i++)
        if (a->writes.at[i].kind == DEP_memory)
            drop_matched(f->s, &left, &a->writes.at[i]);
    bool ok = keeps_forgotten(f->s, a, b) || refuse(why, false, "memory deps did not match");
    for (int i = 0; i < left.n && ok; i++)
        if (has_output(a, left.at[i]))
            ok = refuse(why, false, "memory deps did not match");
    for (int i = 0; i < left.n && ok; i++)
        if (is_ancestor_of_fused(a, left.at[i]))
            ok = refuse(why, false, "intermediate nodes between node1 & node2");
    arena_free(&tmp);
    return ok;
}

// ---- All of it.

static int count_of(const SchedNode *n) {
    return n->snodes.n ? n->snodes.n : 1;
}

static bool unfusable(const SchedNode *n) {
    return n->kind == SCHED_extern || n->kind == SCHED_nop;
}

static bool too_far(const SchedNode *a, const SchedNode *b) {
    return abs(a->min_order - b->max_order) > 64 || abs(b->min_order - a->max_order) > 64;
}

static Device device_of(const SchedNode *n) {
    int count;
    SchedNode *const *singles = sched_singles(n, &count);
    return singles[0]->outputs.at[0]->ir->layout->device;
}

static bool device_mismatch(Fusion *f, const SchedNode *a, const SchedNode *b, Why *why) {
    Buf t = {.arena = f->s->arena};
    buf_puts(&t, "device mismatch (");
    device_print(&t, device_of(a));
    buf_puts(&t, " vs ");
    device_print(&t, device_of(b));
    buf_putc(&t, ')');
    return refuse(why, false, buf_str(&t));
}

static bool loops_differ(Fusion *f, const SchedNode *a, const SchedNode *b, Why *why) {
    Buf t = {.arena = f->s->arena};
    buf_puts(&t, "loops differ: ");
    sym_print_tuple(&t, a->iter, a->n_iter);
    buf_puts(&t, ", ");
    sym_print_tuple(&t, a->red, a->n_red);
    buf_puts(&t, " and ");
    sym_print_tuple(&t, b->iter, b->n_iter);
    buf_puts(&t, ", ");
    sym_print_tuple(&t, b->red, b->n_red);
    why->reason = buf_str(&t);
    why->spoken = why->legal = false;
    return false;
}

// Each of these only keeps a bad trade from being made.
static bool heuristics(Fusion *f, SchedNode *a, SchedNode *b, Why *why) {
    if (why->bytes == 0)
        return refuse(why, true, "no shared data");
    if (count_of(a) + count_of(b) > f->config.max_fusion_size)
        return refuse(why, true, "exceeds max fusion");
    if (increases_peak(f, a, b, why->bytes))
        return refuse(why, true, "Fusion will increase peak memory");
    return true;
}

static bool legal_vertical(Fusion *f, SchedNode *a, SchedNode *b, Why *why) {
    return can_fuse_vertical(f, a, b, why) &&
           (cpu_can_fuse_vertical(f, a, b) || loops_differ(f, a, b, why));
}

// deeper: as the rules that an override cannot pass left it.
static const char *barrier(Fusion *f, const SchedNode *a, const SchedNode *b, Why *deeper) {
    if (!sched_comes_before(a, b))
        loops_differ(f, a, b, deeper);
    return deeper->reason;
}

// Beyond `heuristics`, is the pair legal? Replaces the reason if not.
static bool legal_anyway(Fusion *f, SchedNode *a, SchedNode *b, Why *why) {
    Why deeper = *why;
    why->legal =
        sched_comes_before(a, b) ? legal_vertical(f, a, b, &deeper) : cpu_fit(f, a, b) != FIT_no;
    if (f->asked && !why->legal)
        why->barrier = barrier(f, a, b, &deeper);
    return false;
}

bool fusion_can_fuse(Fusion *f, SchedNode *a, SchedNode *b, Why *why) {
    *why = (Why){0};
    if (a == b)
        return refuse(why, false, "it is the same node");
    if (a->kind == SCHED_grouped || b->kind == SCHED_grouped)
        return refuse(why, false, "grouped node must not be fused with other nodes");
    if (unfusable(a))
        return refuse(why, false, "node1 is extern or nop");
    if (unfusable(b))
        return refuse(why, false, "node2 is extern or nop");
    if (sched_comes_before(b, a))
        return refuse(why, false, "node1 must go before node2");
    if (!device_equal(device_of(a), device_of(b)))
        return device_mismatch(f, a, b, why);
    why->bytes = fusion_shared_bytes(f, a, b);
    if (!heuristics(f, a, b, why))
        return f->r->overrides || f->asked ? legal_anyway(f, a, b, why) : false;
    if (sched_comes_before(a, b)) {
        if (!legal_vertical(f, a, b, why))
            return false;
        why->reason = cpu_outer_loop(f, a, b) ? "outer loop" : "vertical";
        return true;
    }
    bool fits = cpu_fit(f, a, b) != FIT_no;
    Why deeper = *why;
    if (f->asked && !fits)
        why->barrier = barrier(f, a, b, &deeper);
    if (why->bytes < f->config.score_fusion_memory_threshold)
        return refuse(why, fits, "score_fusion_memory_threshold");
    if (too_far(a, b))
        return refuse(why, fits, "Nodes are too far away. Fusing them may increase peak memory.");
    if (!cpu_can_fuse_horizontal(f, a, b))
        return loops_differ(f, a, b, why);
    why->reason = "horizontal";
    return true;
}
