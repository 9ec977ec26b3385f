// Words of the vendor's compiler, all of which are promises or wishes about a loop or a variable: nothing on the host.
#pragma once

#define chess_prepare_for_pipelining
#define chess_keep_sw_loop
#define chess_loop_range(...)
#define chess_unroll_loop(...)
#define chess_flatten_loop
#define chess_no_hw_loop
#define chess_peel_pipelined_loop(...)
#define chess_modulo_scheduling_budget_ratio(...)
#define chess_alloc_clustered_latency_budget_ratio(...)
#define chess_require_pipelining(...)
#define chess_allocate_with_pipelining
#define chess_protect_access
#define chess_storage(...)
#define chess_output
#define chess_clobber
#define chess_error(...)
#define chess_report(...)
#define chess_separator()
#define chess_separator_scheduler(...)
#define chess_memory_fence()
#define chess_copy(x) (x)
#define chess_dont_care(type) (type{})
#define chess_manifest(x) (false)
#define chess_const(x) (false)

#define __aie_dm_resource_a
#define __aie_dm_resource_b
#define __aie_dm_resource_c
#define __aie_dm_resource_d
#define __aie_dm_resource_stack
#define __aie_inline inline __attribute__((always_inline))

#ifndef restrict
#define restrict __restrict
#endif
