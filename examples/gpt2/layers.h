/* What GPT-2 has between its linear layers, forward and backward, on the processor. Matrices are row-major; `rows` are
 * tokens. Every *_back adds to the gradients that it is given. */
#ifndef LAYERS_H
#define LAYERS_H

/* out[row] = embedding of its token + embedding of its place in the sequence of T. */
void embed(float* out, const int* tokens, const float* token_table, const float* place_table, int rows, int T, int C);
void embed_back(float* token_grad, float* place_grad, const float* out_grad, const int* tokens, int rows, int T, int C);

/* Layer norm over C; `stats` keeps mean and 1 / standard deviation of each row. */
void normalise(float* out, float* stats, const float* in, const float* weight, const float* bias, int rows, int C);
void normalise_back(float* in_grad, float* weight_grad, float* bias_grad, const float* out_grad, const float* in,
                    const float* weight, const float* stats, int rows, int C);

/* Causal attention of `heads` heads: qkv holds query, key and value of each row side by side (3 C). `shares` keeps the
 * softmax, T of each row and head. */
void attend(float* out, float* shares, const float* qkv, int B, int T, int C, int heads);
void attend_back(float* qkv_grad, const float* out_grad, const float* shares, const float* qkv, int B, int T, int C,
                 int heads);

/* x / 2 (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))) */
void gelu(float* out, const float* in, int count);
void gelu_back(float* in_grad, const float* in, const float* out_grad, int count);

/* Mean of -log softmax(logits)[target]; logits become the gradient of that mean. */
float cross_entropy(float* logits, const int* targets, int rows, int V);

#endif
