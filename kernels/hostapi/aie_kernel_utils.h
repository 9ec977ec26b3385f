// Wishes about loops, as macros before a `for`: nothing on the host.
#pragma once

#define AIE_LOOP_MIN_ITERATION_COUNT(n)
#define AIE_LOOP_MAX_ITERATION_COUNT(n)
#define AIE_LOOP_RANGE(...)
#define AIE_LOOP_UNROLL(n)
#define AIE_LOOP_UNROLL_FULL
#define AIE_LOOP_NO_UNROLL
#define AIE_LOOP_FLATTEN
#define AIE_TRY_INITIATION_INTERVAL(n)
#define AIE_PREPARE_FOR_PIPELINING
#define AIE_PREPARE_FOR_POSTPIPELINING
#define AIE_MODULO_SCHEDULING_BUDGET_RATIO(n)
#define AIE_KEEP_SW_LOOP
#define AIE_NO_HW_LOOP
#define AIE_PEEL_PIPELINED_LOOP(n)
