// extern_gemm.c: the matrix products of generated code straight to the BLAS-class library. They are
// called often on small matrices, where the road through the reference kernels (schema, metadata, a
// result to be copied) costs more than the product. What does not fit here takes that road.
#include <string.h>

#include "core/exec/internal.h"

typedef struct Product {
    const FxTensor *self;  // added; NULL for mm and bmm
    const FxTensor *a, *b; // (m, k), (k, n), or (batch, m, k), (batch, k, n)
    FxTensor *out;
    double alpha, beta;
} Product;

static bool takes_self(const char *name, bool *batched, bool *known) {
    static const struct {
        const char *name;
        bool self, batched;
    } products[] = {
        {"extern_kernels.mm", false, false},
        {"extern_kernels.bmm", false, true},
        {"extern_kernels.addmm", true, false},
        {"extern_kernels.baddbmm", true, true},
    };
    for (int i = 0; i < COUNT(products); i++)
        if (!strcmp(name, products[i].name)) {
            *batched = products[i].batched;
            *known = true;
            return products[i].self;
        }
    *known = false;
    return false;
}

static bool read_scalar(const FxArg *arg, double *out) {
    if (arg->tag == FXA_int)
        *out = (double)arg->v.i;
    else if (arg->tag == FXA_float)
        *out = arg->v.f;
    else
        return false;
    return true;
}

static bool read_args(Product *p, const FxArg *args, int n_args, bool with_self) {
    int tensors = with_self ? 3 : 2;
    if (n_args < tensors)
        return false;
    for (int i = 0; i < tensors; i++)
        if (args[i].tag != FXA_tensor || args[i].kw)
            return false;
    p->self = with_self ? args[0].v.t : NULL;
    p->a = args[tensors - 2].v.t;
    p->b = args[tensors - 1].v.t;
    for (int i = tensors; i < n_args; i++) {
        double *at = !args[i].kw                    ? NULL
                     : !strcmp(args[i].kw, "alpha") ? &p->alpha
                     : !strcmp(args[i].kw, "beta")  ? &p->beta
                                                    : NULL;
        if (!at || !read_scalar(&args[i], at))
            return false;
    }
    return true;
}

// Shapes and types that a plain product has; self broadcasts to the result.
static bool fits(const Product *p, int ndim) {
    const FxTensor *a = p->a, *b = p->b, *c = p->out;
    int o = ndim - 2;
    if (a->ndim != ndim || b->ndim != ndim || c->ndim != ndim || !c->data)
        return false;
    if ((c->dtype != DT_f32 && c->dtype != DT_f64) || a->dtype != c->dtype || b->dtype != c->dtype)
        return false;
    if (a->size[o + 1] != b->size[o] || c->size[o] != a->size[o] ||
        c->size[o + 1] != b->size[o + 1])
        return false;
    if (o && (a->size[0] != c->size[0] || b->size[0] != c->size[0]))
        return false;
    const FxTensor *s = p->self;
    if (!s)
        return true;
    if (s->ndim > ndim || s->dtype != c->dtype)
        return false;
    for (int i = 1; i <= s->ndim; i++)
        if (s->size[s->ndim - i] != 1 && s->size[s->ndim - i] != c->size[ndim - i])
            return false;
    return true;
}

static void start_from_self(const Product *p) {
    Tensor out = tensor_of(p->out), self = tensor_of(p->self);
    int lead = out.ndim - self.ndim;
    for (int i = out.ndim - 1; i >= 0; i--) {
        bool given = i >= lead && p->self->size[i - lead] == out.size[i];
        self.stride[i] = given ? p->self->stride[i - lead] : 0;
        self.size[i] = out.size[i];
    }
    self.ndim = out.ndim;
    tensor_copy(&out, &self);
    tensor_drop(&self);
    tensor_drop(&out);
}

bool extern_gemm(const char *name, int threads, FxTensor *const out[], int n_out, const FxArg *args,
                 int n_args) {
    bool batched = false, known, with_self = takes_self(name, &batched, &known);
    Product p = {.alpha = 1, .beta = 1, .out = n_out == 1 ? out[0] : NULL};
    if (!known || !p.out || !read_args(&p, args, n_args, with_self) || !fits(&p, batched ? 3 : 2))
        return false;
    if (p.self && p.beta != 0)
        start_from_self(&p);
    int o = batched ? 1 : 0;
    Gemm g = {.dtype = (DType)p.out->dtype,
              .m = p.out->size[o],
              .n = p.out->size[o + 1],
              .k = p.a->size[o + 1],
              .a = p.a->data,
              .b = p.b->data,
              .c = p.out->data,
              .a_row = p.a->stride[o],
              .a_col = p.a->stride[o + 1],
              .b_row = p.b->stride[o],
              .b_col = p.b->stride[o + 1],
              .c_row = p.out->stride[o],
              .c_col = p.out->stride[o + 1],
              .alpha = p.alpha,
              .beta = p.self ? p.beta : 0};
    if (batched) {
        g.batches = p.out->size[0];
        g.a_next = p.a->stride[0];
        g.b_next = p.b->stride[0];
        g.c_next = p.out->stride[0];
    }
    if (!batched || g.batches)
        blas_gemm(&g, threads);
    return true;
}
