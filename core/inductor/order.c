// order.c: the order of execution with the least memory (torch/_inductor/memory.py): three
// topological orders are tried beside the one at hand, and the one whose estimated peak is lowest
// stays; then, when each buffer is last used.
#include "core/inductor/order.h"
#include "core/base/work.h"

#include <stdlib.h>
#include <string.h>

static void add_int(Planner *p, IntList *l, int v) {
    vec_push(p->a, l, v);
}

static bool last_is(const IntList *l, int v) {
    return l->n && vec_last(l) == v;
}

static Mem *mem_at(Planner *p, int place) {
    return place ? &p->mem.at[place - 1] : NULL;
}

static Mem *mem_of(Planner *p, const SchedBuffer *b) {
    return b ? mem_at(p, p->of_buffer[b->id]) : NULL;
}

static Mem *new_mem(Planner *p, const char *name, int maker) {
    Mem m = {.name = name, .maker = maker, .output = map_find(&p->outputs, name) != NULL};
    vec_push(p->a, &p->mem, m); // NOLINT: arena_grow gives memory
    return mem_at(p, p->mem.n);
}

// ---- What is in memory.

static int64_t bytes_of_buffer(const Planner *p, const SchedBuffer *b) {
    if (map_find(&p->s->mutation_real_name, b->ir->name) || !ir_layout_has_tensor(b->ir->layout))
        return 0;
    return ir_layout_bytes(p->s->module->sym, b->ir->layout);
}

// A call with several results allocates them all; the buffers that pick one allocate nothing
// themselves.
static void size_multi_output(Planner *p, Mem *m, const SchedBuffer *b) {
    for (int i = 0; i < b->users.n; i++) {
        const SchedNode *user = b->users.at[i].node;
        if (!user || user->dead || user->op->cls != IR_multi_output)
            continue;
        for (int k = 0; k < user->outputs.n; k++) {
            Mem *item = mem_of(p, user->outputs.at[k]);
            if (!item)
                continue;
            m->alloc += item->release;
            item->alloc = 0;
        }
    }
}

static void add_buffers(Planner *p) {
    for (int i = 0; i < p->n; i++) {
        const SchedNode *n = p->s->nodes.at[i];
        for (int k = 0; k < n->outputs.n; k++) {
            Mem *m = new_mem(p, n->outputs.at[k]->ir->name, i);
            p->of_buffer[n->outputs.at[k]->id] = p->mem.n;
            m->alloc = m->release = bytes_of_buffer(p, n->outputs.at[k]);
            add_int(p, &p->step[i].makes, p->mem.n - 1);
        }
    }
    for (int i = 0; i < p->n; i++) {
        const SchedNode *n = p->s->nodes.at[i];
        for (int k = 0; k < n->outputs.n; k++) {
            const SchedBuffer *b = n->outputs.at[k];
            if (b->ir->layout && b->ir->layout->kind == IRL_multi_output)
                size_multi_output(p, mem_of(p, b), b);
        }
    }
}

// Parameters and arguments belong to the caller; only other inputs (activations saved for backward)
// can be freed.
static bool input_can_be_freed(const char *name) {
    static const char *const kept[] = {"primals_", "arg", "fwd_rng_state", "bwd_rng_state",
                                       "tangents"};
    for (int i = 0; i < COUNT(kept); i++)
        if (str_starts(name, kept[i]))
            return false;
    return true;
}

static void note_use(Planner *p, Mem *m, int node, const Dep *d) {
    if (!last_is(&m->order, node))
        add_int(p, &m->order, node);
    if (!(d->kind == DEP_weak && d->is_fake) && !last_is(&m->lifetime, node))
        add_int(p, &m->lifetime, node);
}

static void use_made(Planner *p, int node, const Dep *d) {
    Mem *m = mem_of(p, d->made);
    if (m)
        note_use(p, m, node, d);
}

static void use_input(Planner *p, int node, const Dep *d) {
    if (d->made || !sched_is_available(p->s, d->buf) || !input_can_be_freed(d->buf))
        return;
    Mem *m = mem_at(p, (int)map_get_int(&p->inputs, d->buf, 0));
    if (!m) {
        m = new_mem(p, d->buf, -1);
        map_put_int(&p->inputs, d->buf, p->mem.n);
    }
    m->alloc = m->release = dep_bytes(p->s, d);
    note_use(p, m, node, d);
}

static void merge_uses(Planner *p, IntList *into, const IntList *from) {
    for (int i = 0; i < from->n; i++) {
        bool known = false;
        for (int k = 0; k < into->n && !known; k++)
            known = into->at[k] == from->at[i];
        if (!known)
            add_int(p, into, from->at[i]);
    }
}

static void add_uses(Planner *p) {
    for (int i = 0; i < p->n; i++) {
        const SchedNode *n = p->s->nodes.at[i];
        for (int k = 0; k < n->unmet.n; k++)
            use_made(p, i, &n->unmet.at[k]);
        for (int k = 0; k < n->order_only.n; k++)
            use_made(p, i, &n->order_only.at[k]);
        for (int k = 0; k < n->reads.n; k++)
            use_input(p, i, &n->reads.at[k]);
    }
    // A version of a buffer lives in its memory: who uses it uses the buffer.
    const Map *real = &p->s->mutation_real_name;
    for (int i = real->n - 1; i >= 0; i--) {
        Mem *version = real->at[i].live ? mem_of(p, sched_buffer(p->s, real->at[i].key)) : NULL;
        Mem *base = version ? mem_of(p, sched_buffer(p->s, real->at[i].ptr)) : NULL;
        if (!base)
            continue;
        merge_uses(p, &base->lifetime, &version->lifetime);
        merge_uses(p, &base->order, &version->order);
    }
}

static void link_steps(Planner *p) {
    int *seen = ARENA_ARRAY(p->a, p->n + 1, int);
    for (int i = 0; i < p->n; i++) {
        Step *st = &p->step[i];
        for (int k = 0; p->mem.at && k < st->makes.n; k++) {
            const Mem *m = &p->mem.at[st->makes.at[k]];
            st->size += m->alloc;
            for (int j = 0; j < m->order.n; j++) {
                int to = m->order.at[j];
                if (to == i || seen[to] == i + 1)
                    continue;
                seen[to] = i + 1;
                add_int(p, &st->succs, to);
                add_int(p, &p->step[to].preds, i);
            }
            for (int j = 0; j < m->lifetime.n; j++)
                add_int(p, &p->step[m->lifetime.at[j]].reads, st->makes.at[k]);
        }
    }
    for (int i = 0; i < p->mem.n; i++)
        for (int j = 0; p->mem.at[i].maker < 0 && j < p->mem.at[i].lifetime.n; j++)
            add_int(p, &p->step[p->mem.at[i].lifetime.at[j]].reads, i);
}

// ---- Memory over an order: order[k] is the node at place k; `now`, if given, gets (n + 1) bytes
// in use.

static int64_t timeline(Planner *p, const int *order, int64_t *now) {
    int64_t *delta = ARENA_ARRAY(p->a, p->n + 2, int64_t);
    int *place = ARENA_ARRAY(p->a, p->n + 1, int);
    for (int k = 0; k < p->n; k++)
        place[order[k]] = k;
    for (int i = 0; i < p->mem.n; i++) {
        const Mem *m = &p->mem.at[i];
        int begin = m->maker < 0 ? 0 : place[m->maker], end = -1;
        for (int j = 0; j < m->lifetime.n; j++)
            if (place[m->lifetime.at[j]] > end)
                end = place[m->lifetime.at[j]];
        delta[begin] += m->alloc;
        if (!m->output)
            delta[(end < 0 ? begin : end) + 1] -= m->release;
    }
    int64_t sum = 0, peak = 0;
    for (int k = 0; k <= p->n; k++) {
        sum += delta[k];
        peak = sum > peak ? sum : peak;
        if (now)
            now[k] = sum;
    }
    return peak;
}

static int64_t peak_of(Planner *p, const int *order) {
    return timeline(p, order, NULL);
}

int order_by_weight(const void *a, const void *b) {
    const Weight *x = a, *y = b;
    if (x->bytes != y->bytes)
        return x->bytes < y->bytes ? -1 : 1;
    return x->node - y->node;
}

// ---- First in, first out: by the places of the predecessors.

typedef struct Waiting {
    int node;
    int *places; // (n) of its predecessors, sorted
    int n;
} Waiting;
typedef VEC(Waiting) Heap;

static bool comes_first(const Waiting *a, const Waiting *b) {
    for (int i = 0; i < a->n && i < b->n; i++)
        if (a->places[i] != b->places[i])
            return a->places[i] < b->places[i];
    return a->n != b->n ? a->n < b->n : a->node < b->node;
}

static void heap_push(Planner *p, Heap *h, Waiting w) {
    vec_push(p->a, h, w);
    for (int i = h->n - 1; i > 0 && comes_first(&h->at[i], &h->at[(i - 1) / 2]); i = (i - 1) / 2) {
        Waiting t = h->at[i];
        h->at[i] = h->at[(i - 1) / 2];
        h->at[(i - 1) / 2] = t;
    }
}

static Waiting heap_pop(Heap *h) {
    Waiting top = h->at[0];
    h->at[0] = vec_last(h);
    h->n--;
    for (int i = 0;;) {
        int least = i;
        for (int c = 2 * i + 1; c <= 2 * i + 2; c++)
            if (c < h->n && comes_first(&h->at[c], &h->at[least]))
                least = c;
        if (least == i)
            return top;
        Waiting t = h->at[i];
        h->at[i] = h->at[least];
        h->at[least] = t;
        i = least;
    }
}

static int by_int(const void *a, const void *b) {
    return *(const int *)a - *(const int *)b;
}

static void bfs_ready(Planner *p, Heap *h, int node) {
    const Step *st = &p->step[node];
    Waiting w = {.node = node, .places = ARENA_ARRAY(p->a, st->preds.n + 1, int), .n = st->preds.n};
    for (int k = 0; k < st->preds.n; k++)
        w.places[k] = p->step[st->preds.at[k]].place;
    qsort(w.places, (size_t)w.n, sizeof(int), by_int);
    heap_push(p, h, w);
}

static bool order_bfs(Planner *p, int *order) {
    Heap heap = {0};
    int n = 0;
    for (int i = 0; i < p->n; i++) {
        p->step[i].waiting = p->step[i].preds.n;
        if (!p->step[i].waiting)
            bfs_ready(p, &heap, i);
    }
    while (heap.n) {
        int node = heap_pop(&heap).node;
        p->step[node].place = n;
        order[n++] = node;
        for (int k = 0; k < p->step[node].succs.n; k++)
            if (--p->step[p->step[node].succs.at[k]].waiting == 0)
                bfs_ready(p, &heap, p->step[node].succs.at[k]);
    }
    return n == p->n;
}

// ---- Depth first, small nodes first.

typedef struct Frame {
    int node, n, next;
    Weight *deps;
} Frame;

static Frame dfs_frame(Planner *p, const int64_t *bytes, int node) {
    const SchedNode *n = p->s->nodes.at[node];
    Frame f = {.node = node, .deps = ARENA_ARRAY(p->a, n->unmet.n + n->order_only.n + 1, Weight)};
    for (int k = 0; k < n->unmet.n + n->order_only.n; k++) {
        const Dep *d = k < n->unmet.n ? &n->unmet.at[k] : &n->order_only.at[k - n->unmet.n];
        const Mem *m = mem_of(p, d->made);
        if (m && m->maker >= 0)
            f.deps[f.n++] = (Weight){bytes[m->maker], m->maker};
    }
    qsort(f.deps, (size_t)f.n, sizeof *f.deps, order_by_weight);
    return f;
}

static bool order_dfs(Planner *p, int *order) {
    int64_t *bytes = ARENA_ARRAY(p->a, p->n + 1, int64_t);
    Weight *roots = ARENA_ARRAY(p->a, p->n + 1, Weight);
    bool *seen = ARENA_ARRAY(p->a, p->n + 1, bool);
    for (int i = 0; i < p->n; i++) {
        bytes[i] = p->step[i].size;
        for (int k = 0; k < p->step[i].reads.n; k++)
            bytes[i] += p->mem.at[p->step[i].reads.at[k]].release;
        roots[i] = (Weight){bytes[i], i};
    }
    qsort(roots, (size_t)p->n, sizeof *roots, order_by_weight);
    VEC(Frame) stack = {0};
    int n = 0;
    for (int i = 0; i < p->n; i++) {
        int next = roots[i].node;
        while (next >= 0 || stack.n) {
            if (next >= 0 && !seen[next]) {
                seen[next] = true;
                vec_push(p->a, &stack, dfs_frame(p, bytes, next));
            }
            next = -1;
            if (!stack.n)
                break;
            Frame *f = &vec_last(&stack);
            if (f->next < f->n) {
                next = f->deps[f->next++].node;
            } else {
                order[n++] = f->node;
                stack.n--;
            }
        }
    }
    return n == p->n;
}

// ---- The choice.

static const struct {
    const char *name;
    bool (*order)(Planner *, int *);
} methods[] = {{"lpmf", order_lpmf}, {"bfs", order_bfs}, {"dfs", order_dfs}};

static Planner new_planner(const Schedule *s, Arena *tmp) {
    Planner p = {
        .s = s, .a = tmp, .n = s->nodes.n, .inputs = {.arena = tmp}, .outputs = {.arena = tmp}};
    p.step = ARENA_ARRAY(tmp, p.n + 1, Step);
    p.of_buffer = ARENA_ARRAY(tmp, s->n_buffer_ids + 1, int);
    for (int i = 0; i < s->module->outputs.n; i++)
        if (s->module->outputs.at[i].buf)
            map_put_int(&p.outputs, s->module->outputs.at[i].buf, 1);
    add_buffers(&p);
    add_uses(&p);
    link_steps(&p);
    return p;
}

void sched_reorder_for_peak_memory(const ScheduleRequest *r, Schedule *s) {
    Arena tmp = {0};
    Planner p = new_planner(s, &tmp);
    int *best = ARENA_ARRAY(&tmp, p.n + 1, int);
    for (int i = 0; i < p.n; i++)
        best[i] = i;
    s->peak_before = s->peak_after = peak_of(&p, best);
    for (int m = 0; m < COUNT(methods) && work_goes_on(r->diag, m, COUNT(methods)); m++) {
        int *order = ARENA_ARRAY(&tmp, p.n + 1, int);
        if (!methods[m].order(&p, order))
            continue;
        int64_t peak = peak_of(&p, order);
        Decide q = {.kind = DECIDE_order,
                    .key = methods[m].name,
                    .by_default = peak < s->peak_after,
                    .score = (double)peak,
                    .bytes = s->peak_after - peak,
                    .reason = "estimated peak in bytes"};
        if (decide(r->decisions, &q)) {
            s->peak_after = peak;
            best = order;
        }
    }
    SchedNode **old = ARENA_ARRAY(&tmp, p.n + 1, SchedNode *);
    if (p.n)
        memcpy(old, s->nodes.at, (size_t)p.n * sizeof *old);
    for (int i = 0; i < p.n; i++)
        s->nodes.at[i] = old[best[i]];
    arena_free(&tmp);
}

const int64_t *sched_memory_timeline(const Schedule *s, Arena *a, int64_t *peak) {
    Arena tmp = {0};
    Planner p = new_planner(s, &tmp);
    int64_t *now = ARENA_ARRAY(a, p.n + 1, int64_t);
    int *order = ARENA_ARRAY(&tmp, p.n + 1, int);
    for (int i = 0; i < p.n; i++)
        order[i] = i;
    timeline(&p, order, now);
    // PyTorch 2.11 takes the outputs' bytes off at the start instead of never: all values are lower
    // by them.
    int64_t outputs = 0;
    for (int i = 0; i < p.mem.n; i++)
        outputs += p.mem.at[i].output ? p.mem.at[i].release : 0;
    *peak = 0;
    for (int k = 0; k <= p.n; k++) {
        now[k] -= outputs;
        *peak = now[k] > *peak ? now[k] : *peak;
    }
    arena_free(&tmp);
    return now;
}
