#include "model.h"

#include <assert.h>
#include <bdforge_llmc.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "layers.h"

/* A linear layer, or a norm: weight and bias. */
typedef struct pair {
    float *weight, *bias;
} pair;

typedef struct block {
    pair norm1, qkv, out, norm2, up, down;
} block;

/* Parameters or gradients, in one piece of memory; `places` follow one another in it. */
typedef struct parts {
    float *tokens, *positions;
    block blocks[LAYERS];
    pair norm;
} parts;

static float* take(float** memory, size_t count) {
    float* const taken = *memory;
    *memory += count;
    return taken;
}

static pair take_pair(float** memory, size_t outputs, size_t inputs) {
    pair made;
    made.weight = take(memory, outputs * inputs), made.bias = take(memory, outputs);
    return made;
}

/* Lays parts out from `memory` on; returns where they end. */
static float* lay_out(parts* made, float* memory) {
    made->tokens = take(&memory, VOCABULARY * WIDTH), made->positions = take(&memory, PLACES * WIDTH);
    for (int i = 0; i < LAYERS; ++i) {
        block* const one = &made->blocks[i];
        one->norm1 = take_pair(&memory, WIDTH, 1), one->qkv = take_pair(&memory, 3 * WIDTH, WIDTH);
        one->out = take_pair(&memory, WIDTH, WIDTH), one->norm2 = take_pair(&memory, WIDTH, 1);
        one->up = take_pair(&memory, 4 * WIDTH, WIDTH), one->down = take_pair(&memory, WIDTH, 4 * WIDTH);
    }
    made->norm = take_pair(&memory, WIDTH, 1);
    return memory;
}

/* About normal, with a standard deviation of 1: the sum of twelve numbers from 0 to 1. */
static float random_normal(uint64_t* state) {
    float sum = -6;
    for (int i = 0; i < 12; ++i) {
        *state = *state * 6364136223846793005u + 1442695040888963407u;
        sum += (float)(*state >> 40) / (float)(1 << 24);
    }
    return sum;
}

static void randomise(float* weights, size_t count, float deviation, uint64_t* state) {
    for (size_t i = 0; i < count; ++i) weights[i] = deviation * random_normal(state);
}

static void ones(pair norm) {
    for (int i = 0; i < WIDTH; ++i) norm.weight[i] = 1;
}

int model_create(model* made) {
    parts parameters;
    uint64_t state = 1;
    made->parameters = calloc(PARAMETERS, sizeof(float)), made->gradients = calloc(PARAMETERS, sizeof(float));
    if (made->parameters == NULL || made->gradients == NULL) return model_free(made), 0;
    const float* const end = lay_out(&parameters, made->parameters);
    assert(end == made->parameters + PARAMETERS), (void)end;
    randomise(parameters.tokens, (VOCABULARY + PLACES) * WIDTH, 0.1f, &state);
    for (int i = 0; i < LAYERS; ++i) {
        const block* const one = &parameters.blocks[i];
        ones(one->norm1), ones(one->norm2);
        randomise(one->qkv.weight, 3 * WIDTH * WIDTH, 0.2f, &state), randomise(one->out.weight, WIDTH * WIDTH, 0.1f, &state);
        randomise(one->up.weight, 4 * WIDTH * WIDTH, 0.2f, &state), randomise(one->down.weight, 4 * WIDTH * WIDTH, 0.1f, &state);
    }
    ones(parameters.norm);
    return 1;
}

void model_free(model* made) {
    free(made->parameters), free(made->gradients);
    made->parameters = made->gradients = NULL;
}

/* What a block computes on its way, or the gradients of that. */
typedef struct values {
    float in[ROWS * WIDTH], norm1[ROWS * WIDTH], qkv[ROWS * 3 * WIDTH], attended[ROWS * WIDTH], between[ROWS * WIDTH],
        norm2[ROWS * WIDTH], up[ROWS * 4 * WIDTH], bent[ROWS * 4 * WIDTH];
} values;

typedef struct kept {
    float norm1[2 * ROWS], norm2[2 * ROWS], shares[ROWS * HEADS * PLACES];
} kept;

typedef struct pass {
    values values[LAYERS + 1], gradients[LAYERS + 1]; /* of the last only `in` and `norm1` */
    kept kept[LAYERS + 1];
    float logits[ROWS * VOCABULARY];
} pass;

static void linear(float* out, const float* in, pair layer, int inputs, int outputs) {
    matmul_forward(out, in, layer.weight, layer.bias, BATCH, PLACES, inputs, outputs);
}

static void linear_back(float* in_grad, pair grad, const float* out_grad, const float* in, pair layer, int inputs,
                        int outputs) {
    matmul_backward(in_grad, grad.weight, grad.bias, out_grad, in, layer.weight, BATCH, PLACES, inputs, outputs);
}

static void add(float* to, const float* x) {
    for (int i = 0; i < ROWS * WIDTH; ++i) to[i] += x[i];
}

static void forward(float* out, const block* own, values* at, kept* stats) {
    normalise(at->norm1, stats->norm1, at->in, own->norm1.weight, own->norm1.bias, ROWS, WIDTH);
    linear(at->qkv, at->norm1, own->qkv, WIDTH, 3 * WIDTH);
    attend(at->attended, stats->shares, at->qkv, BATCH, PLACES, WIDTH, HEADS);
    linear(at->between, at->attended, own->out, WIDTH, WIDTH);
    add(at->between, at->in);
    normalise(at->norm2, stats->norm2, at->between, own->norm2.weight, own->norm2.bias, ROWS, WIDTH);
    linear(at->up, at->norm2, own->up, WIDTH, 4 * WIDTH);
    gelu(at->bent, at->up, ROWS * 4 * WIDTH);
    linear(out, at->bent, own->down, 4 * WIDTH, WIDTH);
    add(out, at->between);
}

static void backward(const float* out_grad, const block* own, block* grad, const values* at, values* back,
                     const kept* stats) {
    add(back->between, out_grad);
    linear_back(back->bent, grad->down, out_grad, at->bent, own->down, 4 * WIDTH, WIDTH);
    gelu_back(back->up, at->up, back->bent, ROWS * 4 * WIDTH);
    linear_back(back->norm2, grad->up, back->up, at->norm2, own->up, WIDTH, 4 * WIDTH);
    normalise_back(back->between, grad->norm2.weight, grad->norm2.bias, back->norm2, at->between, own->norm2.weight,
                   stats->norm2, ROWS, WIDTH);
    add(back->in, back->between);
    linear_back(back->attended, grad->out, back->between, at->attended, own->out, WIDTH, WIDTH);
    attend_back(back->qkv, back->attended, stats->shares, at->qkv, BATCH, PLACES, WIDTH, HEADS);
    linear_back(back->norm1, grad->qkv, back->qkv, at->norm1, own->qkv, WIDTH, 3 * WIDTH);
    normalise_back(back->in, grad->norm1.weight, grad->norm1.bias, back->norm1, at->in, own->norm1.weight, stats->norm1,
                   ROWS, WIDTH);
}

static float run(pass* at, const parts* own, parts* grad, const int* tokens, const int* targets) {
    values *const last = &at->values[LAYERS], *const back = &at->gradients[LAYERS];
    const pair head = {own->tokens, NULL}, head_grad = {grad->tokens, NULL}; /* the table of tokens, once more */
    embed(at->values[0].in, tokens, own->tokens, own->positions, ROWS, PLACES, WIDTH);
    for (int i = 0; i < LAYERS; ++i) forward(at->values[i + 1].in, &own->blocks[i], &at->values[i], &at->kept[i]);
    normalise(last->norm1, at->kept[LAYERS].norm1, last->in, own->norm.weight, own->norm.bias, ROWS, WIDTH);
    linear(at->logits, last->norm1, head, WIDTH, VOCABULARY);
    const float loss = cross_entropy(at->logits, targets, ROWS, VOCABULARY);
    linear_back(back->norm1, head_grad, at->logits, last->norm1, head, WIDTH, VOCABULARY);
    normalise_back(back->in, grad->norm.weight, grad->norm.bias, back->norm1, last->in, own->norm.weight,
                   at->kept[LAYERS].norm1, ROWS, WIDTH);
    for (int i = LAYERS; i-- > 0;)
        backward(at->gradients[i + 1].in, &own->blocks[i], &grad->blocks[i], &at->values[i], &at->gradients[i], &at->kept[i]);
    embed_back(grad->tokens, grad->positions, at->gradients[0].in, tokens, ROWS, PLACES, WIDTH);
    return loss;
}

float model_step(model* trained, const int* tokens, const int* targets) {
    parts own, grad;
    pass* const at = calloc(1, sizeof *at);
    if (at == NULL) return -1;
    lay_out(&own, trained->parameters), lay_out(&grad, trained->gradients);
    memset(trained->gradients, 0, PARAMETERS * sizeof(float));
    const float loss = run(at, &own, &grad, tokens, targets);
    free(at);
    return loss;
}
