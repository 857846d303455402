// config.c: the settings' defaults, as torch/_inductor/config.py has them for a CPU with two
// threads.
#include "core/inductor/ir.h"

InductorConfig inductor_config_default(void) {
    return (InductorConfig){
        .realize_reads_threshold = 4,
        .realize_opcount_threshold = 30,
        .realize_acc_reads_threshold = 8,
        .unroll_reductions_threshold = 8,
        .max_fusion_size = 64,
        .max_fusion_buffer_group_pairwise_attempts = 64,
        .score_fusion_memory_threshold = 10,
        .cpp_max_horizontal_fusion_size = 16,
        .cpp_min_chunk_size = 512,
        .layout_optimization = true,
        .pick_loop_orders = true,
        .inplace_buffers = true,
        .allow_buffer_reuse = true,
        .epilogue_fusion = true,
        .reorder_for_peak_memory = true,
        .use_dce = true,
        .split_reductions = true,
        .cpp_simdlen = 512,
        .threads = 2,
        .multi_processor_count = 16,
        .cpp_fallback_scatter_reduce_sum = true,
    };
}
