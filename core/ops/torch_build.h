// torch_build.h: a call of a captured graph being taken apart into operators. Only core/ops
// includes it.
#ifndef CORE_OPS_TORCH_BUILD_H
#define CORE_OPS_TORCH_BUILD_H

#include "core/base/vec.h"
#include "core/ops/torch.h"

typedef struct Build {
    MetaCtx *m;
    const TorchCall *call;      // as given
    VEC(TorchStep) steps;       // so far
} Build;

typedef struct BuildKw {
    const char *name;           // NULL ends a list of them
    Value value;
} BuildKw;

// torch.c
Value build_value(Build *b, const Value *v); // what a node or step yields, else itself
const TensorMeta *build_tensor(Build *b, const Value *v);   // NULL if it is no tensor
// Appends a step: a packet (overload chosen) or packet.overload; kw ends with a NULL name, may be
// NULL itself. *out refers to the step. method: ints may be given loosely after the object.
bool build_call(Build *b, bool method, const char *name, const Value *args, int n,
                const BuildKw *kw, Value *out);
bool build_op(Build *b, const Op *op, const Value *args, int n, Value *out);
// torch_functional.c
// One operator on x, whose result takes x's place. second: none is left out.
bool build_then(Build *b, const char *op, Value *x, Value second);
// False: the call's target and what is wrong with it.
bool build_fail(Build *b, const char *what);
// The call's arguments by the parameters of a Python function's signature; NULL and an error if
// they do not fit.
Value *build_params(Build *b, const char *signature);
// The same, *first being what is known of the first of them; NULL and an error if that is no
// tensor.
Value *build_params_of(Build *b, const char *signature, const TensorMeta **first);

// torch_rules.c: rules written in C; words are those behind the rule's name in torch_names.def.
typedef bool BuildRule(Build *b, const char *words, Value *out);
Value build_gathered(Build *b, int first); // f(*tensors) or f([tensors]), from there on
BuildRule *build_rule(const char *name, size_t len);        // NULL if there is none

// torch_index.c
BuildRule build_getitem, build_setitem;
// torch_functional.c
BuildRule build_interpolate, build_adaptive, build_adaptive_max, build_tensordot, build_max_unpool;
// torch_python.c
BuildRule build_norm, build_unique, build_cdist, build_unravel_index, build_several_or_one;
// torch_loss.c
BuildRule build_gaussian_nll, build_triplet_margin;
// torch_mha.c
BuildRule build_multi_head_attention;
// torch_nn.c
BuildRule build_local_response_norm, build_lp_pool, build_multilabel_soft_margin, build_kl_div,
    build_grid_sample, build_embedding, build_embedding_bag;
// torch_init.c
BuildRule build_xavier, build_kaiming, build_trunc_normal, build_orthogonal, build_init_eye,
    build_init_dirac, build_init_sparse;

#endif
