// loop_print.c: the text of a loop body, as torch/_inductor/loop_body.py prints its FX graphs: one
// get_index a memory access, values named after their operation by torch.fx's namer.
#include "core/inductor/ir.h"

#include <string.h>

const LoopOpInfo loop_op_info[LOOP_n_kinds] = {
#define LOOPOP(name_, n_args_, cls_, c_, doc_)                                                     \
    [LOOP_##name_] = {#name_, n_args_, LC_##cls_, c_, doc_},
#include "core/inductor/loopops.def"
#undef LOOPOP
};

typedef struct Printer {
    Buf *out;
    Arena *arena;
    const LoopBody *body;
    const LoopBlock *block;
    Map names;          // base -> next number, one namespace a block
    const char **value; // name of each op's value
    IntVec *lines;
    bool root; // block 0: its ops are told to `lines`
} Printer;

// Names that Python has already: the first value of that name gets a number, too.
static bool is_builtin(const char *base) {
    static const char *const builtin[] = {"abs", "pow", "round", "min",   "max",
                                          "sum", "any", "all",   "sorted"};
    return str_index(base, builtin, COUNT(builtin)) >= 0;
}

static const char *fresh(Printer *p, const char *base) {
    MapEntry *e = map_at(&p->names, base);
    int64_t n = e->i++;
    if (n == 0 && !is_builtin(base))
        return base;
    if (n == 0)
        n = e->i++;
    return arena_printf(p->arena, "%s_%d", base, (int)n);
}

static void end_line(Printer *p, int op) {
    buf_putc(p->out, '\n');
    if (p->lines)
        vec_push(p->out->arena, p->lines, p->root ? op : -1);
}

static void plain_line(Printer *p, const char *text) {
    buf_puts(p->out, text);
    end_line(p, -1);
}

static const char *get_index(Printer *p, int index, int op) {
    const char *name = fresh(p, "get_index");
    buf_printf(p->out, "        %s = self.get_index('index%d')", name, index);
    end_line(p, op);
    return name;
}

static void print_scalar(Buf *b, const Value *v) {
    switch (v->kind) {
    case VAL_bool:
        buf_puts(b, v->b ? "True" : "False");
        break;
    case VAL_int:
        buf_printf(b, "%lld", (long long)v->i);
        break;
    case VAL_float:
        buf_py_float(b, v->f);
        break;
    default:
        val_print(b, v, NULL, NULL);
        break;
    }
}

static void print_dtype(Buf *b, DType d) {
    buf_printf(b, "torch.%s", dtype_info[d].torch_name);
}

static const char *base_name(Printer *p, const LoopOp *op) {
    if (op->kind == LOOP_set_indirect)
        return arena_printf(p->arena, "set_indirect%d", op->number);
    if (op->kind == LOOP_masked)
        return arena_printf(p->arena, "masked_subblock%d", p->body->block_number.at[op->number]);
    return loop_op_info[op->kind].name;
}

static void print_reduction(Printer *p, const LoopOp *op) {
    Buf *b = p->out;
    print_dtype(b, op->dtype);
    buf_puts(b, ", ");
    print_dtype(b, op->src_dtype);
    buf_puts(b, ", ");
    buf_py_str(b, op->mode);
    if (strcmp(op->mode, "welford_combine") == 0)
        buf_printf(b, ", (%s, %s, %s)", p->value[op->arg[0]], p->value[op->arg[1]],
                   p->value[op->arg[2]]);
    else
        buf_printf(b, ", %s", p->value[op->arg[0]]);
}

// What stands between the parentheses; idx: names of the get_index before it.
static void print_args(Printer *p, const LoopOp *op, const char *const idx[2]) {
    Buf *b = p->out;
    switch (op->kind) {
    case LOOP_load:
        buf_printf(b, "'%s', %s", op->buf, idx[0]);
        break;
    case LOOP_store:
        buf_printf(b, "'%s', %s, %s, ", op->buf, idx[0], p->value[op->arg[0]]);
        if (op->mode)
            buf_py_str(b, op->mode);
        else
            buf_puts(b, "None");
        break;
    case LOOP_store_reduction:
        buf_printf(b, "'%s', %s, %s", op->buf, idx[0], p->value[op->arg[0]]);
        break;
    case LOOP_reduction:
        print_reduction(p, op);
        break;
    case LOOP_constant:
        print_scalar(b, &op->value);
        buf_puts(b, ", ");
        print_dtype(b, op->dtype);
        break;
    case LOOP_index_expr:
        buf_printf(b, "%s, ", idx[0]);
        print_dtype(b, op->dtype);
        break;
    case LOOP_to_dtype:
    case LOOP_to_dtype_bitcast:
        buf_printf(b, "%s, ", p->value[op->arg[0]]);
        print_dtype(b, op->dtype);
        if (op->src_dtype != DT_none) {
            buf_puts(b, op->kind == LOOP_to_dtype ? ", src_dtype = " : ", ");
            print_dtype(b, op->src_dtype);
        }
        break;
    case LOOP_load_seed:
        buf_printf(b, "'%s', %d", op->buf, op->number);
        break;
    case LOOP_check_bounds:
        buf_printf(b, "%s, %s, %s, %s", idx[0], idx[1], op->lower ? "True" : "False",
                   op->upper ? "True" : "False");
        break;
    case LOOP_masked:
        buf_printf(b, "%s, ", p->value[op->arg[0]]);
        print_scalar(b, &op->value);
        break;
    default:
        for (int i = 0; i < loop_op_info[op->kind].n_args; i++)
            buf_printf(b, "%s%s", i ? ", " : "", p->value[op->arg[i]]);
        break;
    }
}

static void print_op(Printer *p, int i) {
    const LoopOp *op = &p->block->ops.at[i];
    const char *idx[2] = {NULL, NULL};
    if (op->literal) {
        Buf text = {.arena = p->arena};
        print_scalar(&text, &op->value);
        p->value[i] = buf_str(&text);
        return;
    }
    if (op->index >= 0)
        idx[0] = get_index(p, op->index, i);
    if (op->index2 >= 0)
        idx[1] = get_index(p, op->index2, i);
    const char *name = fresh(p, base_name(p, op));
    p->value[i] = name;
    buf_printf(p->out, "        %s = ", name);
    if (op->kind == LOOP_getitem) {
        buf_printf(p->out, "%s[%d]", p->value[op->arg[0]], op->number);
    } else {
        bool self = op->kind == LOOP_masked || op->kind == LOOP_set_indirect;
        buf_printf(p->out, "%s.%s(", self ? "self" : "ops", base_name(p, op));
        print_args(p, op, idx);
        buf_putc(p->out, ')');
    }
    end_line(p, i);
}

static void print_block(Printer *p, int k) {
    p->block = &p->body->blocks.at[k];
    p->root = k == 0;
    p->names = (Map){.arena = p->arena};
    p->value = ARENA_ARRAY(p->arena, p->block->ops.n + 1, const char *);
    if (k == 0)
        buf_puts(p->out, "    def body(self, ops):");
    else
        buf_printf(p->out, "    def masked_subblock%d(self, ops):", p->body->block_number.at[k]);
    end_line(p, -1);
    for (int i = 0; i < p->block->ops.n; i++)
        print_op(p, i);
    int result = p->block->result;
    buf_printf(p->out, "        return %s", result >= 0 ? p->value[result] : "None");
    end_line(p, result);
}

void loop_body_print(Buf *out, const char *op_name, const LoopBody *b, IntVec *line_ops) {
    Arena tmp = {0};
    Printer p = {.out = out, .arena = &tmp, .body = b, .lines = line_ops};
    buf_printf(out, "class %s_loop_body:", op_name);
    end_line(&p, -1);
    buf_puts(out, "    var_ranges = {");
    for (int i = 0; i < b->n_vars; i++) {
        buf_puts(out, i ? ", " : "");
        sym_print(out, b->vars[i]);
        buf_puts(out, ": ");
        sym_print(out, b->sizes[i]);
    }
    plain_line(&p, "}");
    for (int i = 0; i < b->index.n; i++) {
        buf_printf(out, "    index%d = ", i);
        sym_print(out, b->index.at[i]);
        end_line(&p, -1);
    }
    for (int k = 0; k < b->blocks.n; k++)
        print_block(&p, k);
    arena_free(&tmp);
}
