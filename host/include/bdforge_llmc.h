#ifndef BDFORGE_LLMC_H
#define BDFORGE_LLMC_H
/* llm.c's linear layers on the NPU: matmul_forward and matmul_backward with its arguments and meaning, to be linked in
 * place of its own, as examples/gpt2 does; docs/training.md.
 *
 * Products run on the designs that bdforge_llmc_start was given, in bf16 with sums in f32. What they do not take, or fail
 * at, is computed on the processor in f32: each such product says so on stderr once, with its sizes and the reason.
 * For one thread at a time. */
#include <stddef.h>

#include "bdforge.h"

#ifdef __cplusplus
extern "C" {
#endif

/* keep_weights: weights change only where bdforge_llmc_updated is called, so they are copied to the device once a step.
 * timeout_ms: longest wait for one call's products; 0 for 10 seconds. */
typedef struct bdforge_llmc_options {
    int keep_weights;
    unsigned timeout_ms;
} bdforge_llmc_options;

/* Uses these designs, GEMMs of bf16 with results of f32 or bf16, from now on; options NULL: weights are copied at each
 * call. Designs of several layouts spare transposing on the host, and cost a switch of the array's configuration where they
 * take turns. The handles may be freed afterwards. */
bdforge_status bdforge_llmc_start(bdforge_design* const* designs, size_t count, const bdforge_llmc_options* options);
/* Weights have changed, as after the optimiser's step. */
void bdforge_llmc_updated(void);
/* Gives back designs, streams and buffers; products are computed on the processor from then on. */
void bdforge_llmc_stop(void);

/* Since the start: products on the device and on the processor; submissions, of several products where they come together;
 * weights that were copied because they are kept; bytes of floats that were copied in and out, and of these transposed. */
typedef struct bdforge_llmc_counts {
    size_t products, processor_products, submissions, weights, copied_bytes, turned_bytes;
} bdforge_llmc_counts;
bdforge_llmc_counts bdforge_llmc_counted(void);

/* out (B*T x OC) = inp (B*T x C) * weight^T (weight OC x C) + bias (OC, may be NULL). */
void matmul_forward(float* out, const float* inp, const float* weight, const float* bias, int B, int T, int C, int OC);
/* dinp += dout * weight; dweight += dout^T * inp; dbias += sums of dout's columns, where it is not NULL. */
void matmul_backward(float* dinp, float* dweight, float* dbias, const float* dout, const float* inp, const float* weight,
                     int B, int T, int C, int OC);

#ifdef __cplusplus
}
#endif
#endif
