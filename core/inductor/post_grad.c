// post_grad.c: the post-grad passes in PyTorch's order (torch/_inductor/fx_passes/post_grad.py).
#include "core/aot/aot.h"
#include "core/inductor/ir.h"

const GraphPass *const post_grad_passes[] = {0};
const int n_post_grad_passes = 0;
