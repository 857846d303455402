// autocast.c: the types that autocast casts to (autocast.h).
#include "core/ops/autocast.h"

#include <string.h>

#include "core/base/vec.h"

typedef enum Policy { POLICY_none, POLICY_lower, POLICY_fp32, POLICY_promote } Policy;

static const struct {
    Policy policy;
    const char *packets; // parted by spaces
} rows[] = {
#define AUTOCAST(policy, packets) {POLICY_##policy, packets},
#include "core/ops/autocast.def"
#undef AUTOCAST
};

static bool lists(const char *packets, const char *name) {
    size_t len = strlen(name);
    for (const char *p = strstr(packets, name); p; p = strstr(p + 1, name))
        if ((p == packets || p[-1] == ' ') && (p[len] == ' ' || !p[len]))
            return true;
    return false;
}

static Policy policy_of(const Op *op) {
    if (strcmp(op->ns, "aten") != 0)
        return POLICY_none;
    for (int i = 0; i < COUNT(rows); i++)
        if (lists(rows[i].packets, op->name))
            return rows[i].policy;
    return POLICY_none;
}

bool autocast_casts(const TensorMeta *m, DType to) {
    return dtype_is_float(m->dtype) && m->dtype != DT_f64 && m->device.type == DEV_cpu &&
           m->dtype != to;
}

// cat and stack take the widest type among their tensors.
static bool any_f32(const Value *v) {
    if (v->kind == VAL_tensor)
        return v->tensor->dtype == DT_f32;
    if (v->kind == VAL_list || v->kind == VAL_tuple)
        for (int i = 0; i < v->n; i++)
            if (any_f32(&v->at[i]))
                return true;
    return false;
}

DType autocast_dtype(const Autocast *a, const Op *op, const Value *args) {
    Policy p = a->on ? policy_of(op) : POLICY_none;
    if (p == POLICY_promote) {
        p = POLICY_lower;
        for (int i = 0; i < op->n_args; i++)
            p = any_f32(&args[i]) ? POLICY_fp32 : p;
    }
    return p == POLICY_lower ? a->dtype : p == POLICY_fp32 ? DT_f32 : DT_none;
}

bool autocast_enter(Autocast *a, const Value *args, int n_args) {
    if (n_args < 1 || args[0].kind != VAL_str || strcmp(args[0].s, "cpu") != 0)
        return false;
    a->on = n_args < 3 || args[2].kind != VAL_bool || args[2].b;
    a->dtype = n_args > 1 && args[1].kind == VAL_dtype ? args[1].dtype : DT_bf16;
    return true;
}

bool autocast_is_enter(const char *target) {
    return !strcmp(target, "torch.amp.autocast_mode._enter_autocast") ||
           !strcmp(target, "torch.amp._enter_autocast");
}

bool autocast_is_exit(const char *target) {
    return !strcmp(target, "torch.amp.autocast_mode._exit_autocast") ||
           !strcmp(target, "torch.amp._exit_autocast");
}

Value autocast_value(Autocast a) {
    return val_int((int64_t)a.dtype << 1 | a.on);
}

bool autocast_from(const Value *v, Autocast *out) {
    if (v->kind != VAL_int || v->i < 0)
        return false;
    *out = (Autocast){v->i & 1, (DType)(v->i >> 1)};
    return true;
}
