// torchfn_nn.c: functions of torch.nn.functional: what their Python bodies do before they reach an
// op.
#include "core/aot/torchlevel.h"

#include <math.h>
#include <string.h>

static Value input_of(const TorchCall *c) {
    return call_arg(c, 0, "input", NONE);
}

static bool flag(const TorchCall *c, int pos, const char *kw, bool dflt) {
    Value v = call_arg(c, pos, kw, BOOL(dflt));
    return bool_arg(&v);
}

static const char *base_name(const TorchCall *c) {
    const char *dot = strrchr(c->target, '.');
    return dot ? dot + 1 : c->target;
}

// activations

// f(x, …, inplace): the argument goes, f or f_ is called. Without it the function is the op.
bool fn_inplace_pair(Trace *t, const TorchCall *c, Value *out) {
    static const struct {
        const char *name;
        int pos;
    } places[] = {
        {"relu", 1}, {"hardswish", 1}, {"hardsigmoid", 1}, {"silu", 1},      {"mish", 1},
        {"selu", 1}, {"celu", 2},      {"leaky_relu", 2},  {"threshold", 3},
    };
    const char *name = base_name(c);
    int pos = -1;
    for (int i = 0; i < COUNT(places); i++)
        if (strcmp(places[i].name, name) == 0)
            pos = places[i].pos;
    bool inplace = flag(c, pos, "inplace", false);
    TorchCall plain = *c;
    plain.n_args = pos >= 0 && c->n_args > pos ? pos : c->n_args;
    plain.n_kwargs = 0;
    const char **kw = ARENA_ARRAY(t->arena, c->n_kwargs + 1, const char *);
    Value *kwargs = ARENA_ARRAY(t->arena, c->n_kwargs + 1, Value);
    for (int i = 0; i < c->n_kwargs; i++)
        if (strcmp(c->kw[i], "inplace") != 0) {
            kw[plain.n_kwargs] = c->kw[i];
            kwargs[plain.n_kwargs++] = c->kwargs[i];
        }
    plain.kw = kw;
    plain.kwargs = kwargs;
    return call_packet(t, inplace ? arena_printf(t->arena, "%s_", name) : name, &plain, out);
}

bool fn_relu6(Trace *t, const TorchCall *c, Value *out) {
    Value x = input_of(c);
    *out = flag(c, 1, "inplace", false) ? CALL(t, aten_hardtanh__default, x, INT(0), INT(6))
                                        : CALL(t, aten_hardtanh_default, x, INT(0), INT(6));
    return true;
}

bool fn_hardtanh(Trace *t, const TorchCall *c, Value *out) {
    Value x = input_of(c), low = call_arg(c, 1, "min_val", FLT(-1));
    Value high = call_arg(c, 2, "max_val", FLT(1));
    *out = flag(c, 3, "inplace", false) ? CALL(t, aten_hardtanh__default, x, low, high)
                                        : CALL(t, aten_hardtanh_default, x, low, high);
    return true;
}

bool fn_elu(Trace *t, const TorchCall *c, Value *out) {
    Value x = input_of(c), alpha = call_arg(c, 1, "alpha", FLT(1));
    *out = flag(c, 2, "inplace", false) ? CALL(t, aten_elu__default, x, alpha)
                                        : CALL(t, aten_elu_default, x, alpha);
    return true;
}

// F.softmax(x, dim, _stacklevel, dtype) and torch.softmax(x, dim, dtype).
bool fn_softmax(Trace *t, const TorchCall *c, Value *out) {
    Value x = input_of(c), dim = call_arg(c, 1, "dim", NONE);
    Value dtype = call_arg(c, 2, "dtype", NONE);
    if (dtype.kind != VAL_dtype)
        dtype = call_arg(c, 3, "dtype", NONE);
    if (dim.kind != VAL_int)
        return false;
    if (strcmp(base_name(c), "softmax") == 0)
        *out = CALL(t, aten_softmax_int, x, dim, dtype);
    else
        *out = CALL(t, aten_log_softmax_int, x, dim, dtype);
    return true;
}

bool fn_softmin(Trace *t, const TorchCall *c, Value *out) {
    Value dim = call_arg(c, 1, "dim", INT(-1));
    Value n = CALL(t, aten_neg_default, input_of(c));
    *out = CALL(t, aten_softmax_int, n, dim, call_arg(c, 3, "dtype", NONE));
    return true;
}

bool fn_softsign(Trace *t, const TorchCall *c, Value *out) {
    Value x = input_of(c);
    Value a = CALL(t, aten_abs_default, x);
    a = CALL(t, aten_add_Tensor, a, INT(1));
    *out = CALL(t, aten_div_Tensor, x, a);
    return true;
}

bool fn_tanhshrink(Trace *t, const TorchCall *c, Value *out) {
    Value x = input_of(c);
    Value th = CALL(t, aten_tanh_default, x);
    *out = CALL(t, aten_sub_Tensor, x, th);
    return true;
}

bool fn_logsigmoid(Trace *t, const TorchCall *c, Value *out) {
    *out = CALL(t, aten_log_sigmoid_default, input_of(c));
    return true;
}

bool fn_glu(Trace *t, const TorchCall *c, Value *out) {
    *out = CALL(t, aten_glu_default, input_of(c), call_arg(c, 1, "dim", INT(-1)));
    return true;
}

// dropout

bool fn_dropout(Trace *t, const TorchCall *c, Value *out) {
    Value x = input_of(c), p = call_arg(c, 1, "p", FLT(0.5));
    bool alpha = strcmp(base_name(c), "alpha_dropout") == 0;
    Value train = BOOL(flag(c, 2, "training", flag(c, 2, "train", !alpha)));
    if (flag(c, 3, "inplace", false))
        *out = alpha ? CALL(t, aten_alpha_dropout__default, x, p, train)
                     : CALL(t, aten_dropout__default, x, p, train);
    else
        *out = alpha ? CALL(t, aten_alpha_dropout_default, x, p, train)
                     : CALL(t, aten_dropout_default, x, p, train);
    return true;
}

bool fn_feature_dropout(Trace *t, const TorchCall *c, Value *out) {
    Value x = input_of(c), p = call_arg(c, 1, "p", FLT(0.5)),
          train = BOOL(flag(c, 2, "training", true));
    *out = flag(c, 3, "inplace", false) ? CALL(t, aten_feature_dropout__default, x, p, train)
                                        : CALL(t, aten_feature_dropout_default, x, p, train);
    return true;
}

// normalization

// torch.batch_norm has weight and bias before the statistics, torch.nn.functional.batch_norm
// behind.
bool fn_batch_norm(Trace *t, const TorchCall *c, Value *out) {
    if (strcmp(c->target, "torch.batch_norm") == 0)
        return false;
    Value training = BOOL(flag(c, 5, "training", false));
    *out = CALL(t, aten_batch_norm_default, input_of(c), call_arg(c, 3, "weight", NONE),
                call_arg(c, 4, "bias", NONE), call_arg(c, 1, "running_mean", NONE),
                call_arg(c, 2, "running_var", NONE), training, call_arg(c, 6, "momentum", FLT(0.1)),
                call_arg(c, 7, "eps", FLT(1e-5)), BOOL(true));
    return true;
}

bool fn_layer_norm(Trace *t, const TorchCall *c, Value *out) {
    *out = CALL(t, aten_layer_norm_default, input_of(c), call_arg(c, 1, "normalized_shape", NONE),
                call_arg(c, 2, "weight", NONE), call_arg(c, 3, "bias", NONE),
                call_arg(c, 4, "eps", FLT(1e-5)));
    return true;
}

bool fn_group_norm(Trace *t, const TorchCall *c, Value *out) {
    *out = CALL(t, aten_group_norm_default, input_of(c), call_arg(c, 1, "num_groups", INT(1)),
                call_arg(c, 2, "weight", NONE), call_arg(c, 3, "bias", NONE),
                call_arg(c, 4, "eps", FLT(1e-5)));
    return true;
}

bool fn_instance_norm(Trace *t, const TorchCall *c, Value *out) {
    if (strcmp(c->target, "torch.instance_norm") == 0)
        return false;
    *out = CALL(t, aten_instance_norm_default, input_of(c), call_arg(c, 3, "weight", NONE),
                call_arg(c, 4, "bias", NONE), call_arg(c, 1, "running_mean", NONE),
                call_arg(c, 2, "running_var", NONE), BOOL(flag(c, 5, "use_input_stats", true)),
                call_arg(c, 6, "momentum", FLT(0.1)), call_arg(c, 7, "eps", FLT(1e-5)), BOOL(true));
    return true;
}

bool fn_rms_norm(Trace *t, const TorchCall *c, Value *out) {
    *out = CALL(t, aten_rms_norm_default, input_of(c), call_arg(c, 1, "normalized_shape", NONE),
                call_arg(c, 2, "weight", NONE), call_arg(c, 3, "eps", NONE));
    return true;
}

bool fn_normalize(Trace *t, const TorchCall *c, Value *out) {
    Value x = input_of(c), p = call_arg(c, 1, "p", FLT(2)), dim = call_arg(c, 2, "dim", INT(1));
    if (dim.kind == VAL_int)
        dim = list_of(t, dim, END);
    Value n = CALL(t, aten_linalg_vector_norm_default, x, p, dim, BOOL(true));
    n = CALL(t, aten_clamp_min_default, n, call_arg(c, 3, "eps", FLT(1e-12)));
    n = CALL(t, aten_expand_default, n, sizes_of(t, x));
    *out = CALL(t, aten_div_Tensor, x, n);
    return true;
}

// pooling

bool fn_max_pool(Trace *t, const TorchCall *c, Value *out) {
    const char *name = base_name(c);
    bool functional = str_starts(c->target, "torch.nn.functional.");
    if (!functional)
        return false;
    Value stride = call_arg(c, 2, "stride", NONE);
    if (stride.kind == VAL_none)
        stride = val_list(t->arena, VAL_list, 0);
    if (flag(c, 6, "return_indices", false))
        name = arena_printf(t->arena, "%s_with_indices", name);
    *out = call_packet_args(t, name, input_of(c), call_arg(c, 1, "kernel_size", NONE), stride,
                            call_arg(c, 3, "padding", INT(0)), call_arg(c, 4, "dilation", INT(1)),
                            BOOL(flag(c, 5, "ceil_mode", false)), END);
    return true;
}

// The output size with None replaced by the input's own size.
static Value pool_size(Trace *t, Value x, Value size, int spatial) {
    Value list = val_list(t->arena, VAL_list, spatial);
    for (int i = 0; i < spatial; i++) {
        bool many = size.kind == VAL_list || size.kind == VAL_tuple;
        Value v = many ? item_of(size, i) : size;
        list.at[i] = v.kind == VAL_none ? val_sym(size_of(t, x, dim_of(x) - spatial + i)) : v;
    }
    return list;
}

bool fn_adaptive_pool(Trace *t, const TorchCall *c, Value *out) {
    Value x = input_of(c);
    int spatial = strstr(c->target, "2d") ? 2 : 3;
    *out = call_packet_args(t, base_name(c), x,
                            pool_size(t, x, call_arg(c, 1, "output_size", NONE), spatial), END);
    return true;
}

bool fn_adaptive_max_pool(Trace *t, const TorchCall *c, Value *out) {
    Value x = input_of(c);
    int spatial = strstr(c->target, "1d") ? 1 : strstr(c->target, "2d") ? 2 : 3;
    Value both = call_packet_args(
        t, base_name(c), x, pool_size(t, x, call_arg(c, 1, "output_size", NONE), spatial), END);
    *out = flag(c, 2, "return_indices", false) ? both : item_of(both, 0);
    return true;
}

// embeddings

bool fn_embedding(Trace *t, const TorchCall *c, Value *out) {
    if (!str_starts(c->target, "torch.nn.functional."))
        return false;
    Value ids = input_of(c), weight = call_arg(c, 1, "weight", NONE),
          pad = call_arg(c, 2, "padding_idx", NONE);
    Value max_norm = call_arg(c, 3, "max_norm", NONE);
    int64_t rows = 0;
    if (max_norm.kind != VAL_none)
        return false;
    if (pad.kind == VAL_none)
        pad = INT(-1);
    else if (pad.kind == VAL_int && pad.i < 0 && expr_int(size_of(t, weight, 0), &rows))
        pad = INT(rows + pad.i);
    *out = CALL(t, aten_embedding_default, weight, ids, pad,
                BOOL(flag(c, 5, "scale_grad_by_freq", false)), BOOL(flag(c, 6, "sparse", false)));
    return true;
}

bool fn_embedding_bag(Trace *t, const TorchCall *c, Value *out) {
    static const char *const modes[] = {"sum", "mean", "max"};
    if (!str_starts(c->target, "torch.nn.functional."))
        return false;
    Value ids = input_of(c), offsets = call_arg(c, 2, "offsets", NONE),
          mode = call_arg(c, 6, "mode", val_str("mean"));
    Value weights = call_arg(c, 8, "per_sample_weights", NONE),
          pad = call_arg(c, 10, "padding_idx", INT(-1));
    int m = mode.kind == VAL_str ? str_index(mode.s, modes, 3) : -1;
    if (m < 0)
        return false;
    if (dim_of(ids) == 2) {
        offsets = call_packet_args(t, "arange", INT(0), numel_of(t, ids),
                                   val_sym(size_of(t, ids, 1)), END);
        ids = reshape(t, ids, list_of(t, INT(-1), END));
        if (weights.kind == VAL_tensor)
            weights = reshape(t, weights, list_of(t, INT(-1), END));
    }
    Value all =
        CALL(t, aten_embedding_bag_padding_idx, call_arg(c, 1, "weight", NONE), ids, offsets,
             BOOL(flag(c, 5, "scale_grad_by_freq", false)), INT(m),
             BOOL(flag(c, 7, "sparse", false)), weights,
             BOOL(flag(c, 9, "include_last_offset", false)), pad.kind == VAL_none ? INT(-1) : pad);
    *out = item_of(all, 0);
    return true;
}

// losses

static Value reduction_of(const TorchCall *c, int pos) {
    static const char *const names[] = {"none", "mean", "sum"};
    Value v = call_arg(c, pos, "reduction", val_str("mean"));
    int i = v.kind == VAL_str ? str_index(v.s, names, 3) : -1;
    return INT(i < 0 ? 1 : i);
}

bool fn_cross_entropy(Trace *t, const TorchCall *c, Value *out) {
    *out =
        CALL(t, aten_cross_entropy_loss_default, input_of(c), call_arg(c, 1, "target", NONE),
             call_arg(c, 2, "weight", NONE), reduction_of(c, 6),
             call_arg(c, 4, "ignore_index", INT(-100)), call_arg(c, 7, "label_smoothing", FLT(0)));
    return true;
}

bool fn_nll_loss(Trace *t, const TorchCall *c, Value *out) {
    *out = CALL(t, aten_nll_loss_nd_default, input_of(c), call_arg(c, 1, "target", NONE),
                call_arg(c, 2, "weight", NONE), reduction_of(c, 6),
                call_arg(c, 4, "ignore_index", INT(-100)));
    return true;
}

bool fn_elementwise_loss(Trace *t, const TorchCall *c, Value *out) {
    const char *name = base_name(c);
    Value both = CALL(t, aten_broadcast_tensors_default,
                      list_of(t, input_of(c), call_arg(c, 1, "target", NONE), END));
    Value a = item_of(both, 0), b = item_of(both, 1);
    bool huber = strcmp(name, "huber_loss") == 0, smooth = strcmp(name, "smooth_l1_loss") == 0;
    Value red = reduction_of(c, huber ? 2 : 4);
    if (huber)
        *out = CALL(t, aten_huber_loss_default, a, b, red, call_arg(c, 3, "delta", FLT(1)));
    else if (smooth)
        *out = CALL(t, aten_smooth_l1_loss_default, a, b, red, call_arg(c, 5, "beta", FLT(1)));
    else
        *out = call_packet_args(t, name, a, b, red, END);
    return true;
}

bool fn_kl_div(Trace *t, const TorchCall *c, Value *out) {
    Value red = call_arg(c, 4, "reduction", val_str("mean"));
    bool batchmean = red.kind == VAL_str && strcmp(red.s, "batchmean") == 0;
    Value x = input_of(c);
    *out = CALL(t, aten_kl_div_default, x, call_arg(c, 1, "target", NONE),
                batchmean ? INT(2) : reduction_of(c, 4), BOOL(flag(c, 5, "log_target", false)));
    if (batchmean && dim_of(x))
        *out = CALL(t, aten_div_Tensor, *out, val_sym(size_of(t, x, 0)));
    return true;
}

bool fn_bce(Trace *t, const TorchCall *c, Value *out) {
    Value w = call_arg(c, 2, "weight", NONE), target = call_arg(c, 1, "target", NONE);
    if (w.kind == VAL_tensor)
        w = CALL(t, aten_expand_default, w, sizes_of(t, target));
    *out = CALL(t, aten_binary_cross_entropy_default, input_of(c), target, w, reduction_of(c, 5));
    return true;
}

bool fn_bce_logits(Trace *t, const TorchCall *c, Value *out) {
    *out = CALL(t, aten_binary_cross_entropy_with_logits_default, input_of(c),
                call_arg(c, 1, "target", NONE), call_arg(c, 2, "weight", NONE),
                call_arg(c, 6, "pos_weight", NONE), reduction_of(c, 5));
    return true;
}

// resampling and windows

bool fn_interpolate(Trace *t, const TorchCall *c, Value *out) {
    static const char *const kinds[][4] = {
        {"nearest", "upsample_nearest1d", "upsample_nearest2d", "upsample_nearest3d"},
        {"nearest-exact", "_upsample_nearest_exact1d", "_upsample_nearest_exact2d",
         "_upsample_nearest_exact3d"},
        {"linear", "upsample_linear1d", NULL, NULL},
        {"bilinear", NULL, "upsample_bilinear2d", NULL},
        {"trilinear", NULL, NULL, "upsample_trilinear3d"},
        {"bicubic", NULL, "upsample_bicubic2d", NULL},
    };
    Value x = input_of(c), size = call_arg(c, 1, "size", NONE),
          scale = call_arg(c, 2, "scale_factor", NONE);
    Value mode = call_arg(c, 3, "mode", val_str("nearest")),
          align = call_arg(c, 4, "align_corners", NONE);
    int spatial = dim_of(x) - 2;
    if (mode.kind != VAL_str || spatial < 1 || spatial > 3 || flag(c, 6, "antialias", false))
        return false;
    const char *name = NULL;
    bool nearest = str_starts(mode.s, "nearest");
    for (int i = 0; i < COUNT(kinds); i++)
        if (strcmp(kinds[i][0], mode.s) == 0)
            name = kinds[i][spatial];
    const Op *op = name ? op_find_overload("aten", name, "vec") : NULL;
    if (!op)
        return false;
    Value *v[] = {&size, &scale};
    for (int k = 0; k < 2; k++)
        if (v[k]->kind != VAL_none && v[k]->kind != VAL_list && v[k]->kind != VAL_tuple) {
            Value list = val_list(t->arena, VAL_list, spatial);
            for (int i = 0; i < spatial; i++)
                list.at[i] = *v[k];
            *v[k] = list;
        }
    for (int i = 0; scale.kind != VAL_none && i < scale.n; i++)
        scale.at[i] = FLT(float_arg(&scale.at[i], 1));
    Value args[4] = {x, size, nearest ? scale : BOOL(bool_arg(&align)), scale};
    *out = trace_dispatch(t, op, args);
    return true;
}

bool fn_grid_sample(Trace *t, const TorchCall *c, Value *out) {
    static const char *const modes[] = {"bilinear", "nearest", "bicubic"};
    static const char *const paddings[] = {"zeros", "border", "reflection"};
    Value mode = call_arg(c, 2, "mode", val_str("bilinear")),
          pad = call_arg(c, 3, "padding_mode", val_str("zeros"));
    int m = mode.kind == VAL_str ? str_index(mode.s, modes, 3) : -1;
    int p = pad.kind == VAL_str ? str_index(pad.s, paddings, 3) : -1;
    if (m < 0 || p < 0)
        return false;
    *out = CALL(t, aten_grid_sampler_default, input_of(c), call_arg(c, 1, "grid", NONE), INT(m),
                INT(p), BOOL(flag(c, 4, "align_corners", false)));
    return true;
}

bool fn_im2col(Trace *t, const TorchCall *c, Value *out) {
    if (!str_starts(c->target, "torch.nn.functional."))
        return false;
    *out = call_packet_args(t, "im2col", input_of(c), call_arg(c, 1, "kernel_size", NONE),
                            call_arg(c, 2, "dilation", INT(1)), call_arg(c, 3, "padding", INT(0)),
                            call_arg(c, 4, "stride", INT(1)), END);
    return true;
}

bool fn_col2im(Trace *t, const TorchCall *c, Value *out) {
    *out =
        call_packet_args(t, "col2im", input_of(c), call_arg(c, 1, "output_size", NONE),
                         call_arg(c, 2, "kernel_size", NONE), call_arg(c, 3, "dilation", INT(1)),
                         call_arg(c, 4, "padding", INT(0)), call_arg(c, 5, "stride", INT(1)), END);
    return true;
}
