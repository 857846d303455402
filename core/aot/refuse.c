// refuse.c: why a call that no rule took cannot be traced. A name unknown here stays an opaque
// node; arguments that PyTorch itself would not take are an error.
#include "core/aot/refuse.h"

#include "core/ops/torch.h"

bool call_may_be_opaque(MetaCtx *m, const Node *n, const Value *args, const Value *kwargs) {
    bool method = n->op == FX_call_method;
    if (str_starts(n->target, "torch.ops.") || !ops_knows_torch(method, n->target))
        return true;
    const char **kw = ARENA_ARRAY(m->arena, n->n_kwargs + 1, const char *);
    for (int i = 0; i < n->n_kwargs; i++)
        kw[i] = n->kwargs[i].name;
    TorchCall call = {.method = method,
                      .target = n->target,
                      .args = args,
                      .n_args = n->n_args,
                      .kw = kw,
                      .kwargs = kwargs,
                      .n_kwargs = n->n_kwargs};
    TorchResult ignored;
    return ops_resolve_torch(m, &call, &ignored);
}
