#include "layers.h"

#include <math.h>

void embed(float* out, const int* tokens, const float* token_table, const float* place_table, int rows, int T, int C) {
    for (int row = 0; row < rows; ++row)
        for (int c = 0; c < C; ++c) out[row * C + c] = token_table[tokens[row] * C + c] + place_table[row % T * C + c];
}

void embed_back(float* token_grad, float* place_grad, const float* out_grad, const int* tokens, int rows, int T, int C) {
    for (int row = 0; row < rows; ++row) {
        for (int c = 0; c < C; ++c) {
            token_grad[tokens[row] * C + c] += out_grad[row * C + c];
            place_grad[row % T * C + c] += out_grad[row * C + c];
        }
    }
}

void normalise(float* out, float* stats, const float* in, const float* weight, const float* bias, int rows, int C) {
    for (int row = 0; row < rows; ++row, in += C, out += C, stats += 2) {
        float mean = 0, variance = 0;
        for (int c = 0; c < C; ++c) mean += in[c] / (float)C;
        for (int c = 0; c < C; ++c) variance += (in[c] - mean) * (in[c] - mean) / (float)C;
        stats[0] = mean, stats[1] = 1 / sqrtf(variance + 1e-5f);
        for (int c = 0; c < C; ++c) out[c] = (in[c] - mean) * stats[1] * weight[c] + bias[c];
    }
}

void normalise_back(float* in_grad, float* weight_grad, float* bias_grad, const float* out_grad, const float* in,
                    const float* weight, const float* stats, int rows, int C) {
    for (int row = 0; row < rows; ++row, in += C, in_grad += C, out_grad += C, stats += 2) {
        float sum = 0, along = 0; /* of the gradient before weight and bias, and of it times the normalised input */
        for (int c = 0; c < C; ++c) {
            const float x = (in[c] - stats[0]) * stats[1], grad = out_grad[c] * weight[c];
            sum += grad / (float)C, along += grad * x / (float)C;
            weight_grad[c] += out_grad[c] * x, bias_grad[c] += out_grad[c];
        }
        for (int c = 0; c < C; ++c) {
            const float x = (in[c] - stats[0]) * stats[1];
            in_grad[c] += stats[1] * (out_grad[c] * weight[c] - sum - x * along);
        }
    }
}

static float dot(const float* x, const float* y, int count) {
    float sum = 0;
    for (int i = 0; i < count; ++i) sum += x[i] * y[i];
    return sum;
}

static void add_scaled(float* to, float scale, const float* x, int count) {
    for (int i = 0; i < count; ++i) to[i] += scale * x[i];
}

/* values[0 ... count) become their softmax */
static void softmax(float* values, int count) {
    float largest = values[0], sum = 0;
    for (int i = 1; i < count; ++i) largest = fmaxf(largest, values[i]);
    for (int i = 0; i < count; ++i) sum += values[i] = expf(values[i] - largest);
    for (int i = 0; i < count; ++i) values[i] /= sum;
}

void attend(float* out, float* shares, const float* qkv, int B, int T, int C, int heads) {
    const int size = C / heads;
    for (int row = 0; row < B * T; ++row) {
        const int t = row % T;
        for (int head = 0; head < heads; ++head, shares += T) {
            const float* const query = qkv + row * 3 * C + head * size;
            const float* const first = qkv + (row - t) * 3 * C + head * size; /* of the sequence; key and value follow */
            float* const to = out + row * C + head * size;
            for (int s = 0; s <= t; ++s) shares[s] = dot(query, first + s * 3 * C + C, size) / sqrtf((float)size);
            softmax(shares, t + 1);
            for (int i = 0; i < size; ++i) to[i] = 0;
            for (int s = 0; s <= t; ++s) add_scaled(to, shares[s], first + s * 3 * C + 2 * C, size);
        }
    }
}

void attend_back(float* qkv_grad, const float* out_grad, const float* shares, const float* qkv, int B, int T, int C,
                 int heads) {
    const int size = C / heads;
    for (int row = 0; row < B * T; ++row) {
        const int t = row % T;
        for (int head = 0; head < heads; ++head, shares += T) {
            const int query = row * 3 * C + head * size, first = (row - t) * 3 * C + head * size;
            const float* const from = out_grad + row * C + head * size;
            float mean = 0; /* of the shares' gradients, by the shares */
            for (int s = 0; s <= t; ++s) mean += shares[s] * dot(from, qkv + first + s * 3 * C + 2 * C, size);
            for (int s = 0; s <= t; ++s) {
                const int key = first + s * 3 * C + C, value = key + C;
                const float grad = shares[s] * (dot(from, qkv + value, size) - mean) / sqrtf((float)size);
                add_scaled(qkv_grad + value, shares[s], from, size);
                add_scaled(qkv_grad + query, grad, qkv + key, size);
                add_scaled(qkv_grad + key, grad, qkv + query, size);
            }
        }
    }
}

static const float slope = 0.7978845608f, bend = 0.044715f;

void gelu(float* out, const float* in, int count) {
    for (int i = 0; i < count; ++i) {
        const float x = in[i];
        out[i] = x / 2 * (1 + tanhf(slope * (x + bend * x * x * x)));
    }
}

void gelu_back(float* in_grad, const float* in, const float* out_grad, int count) {
    for (int i = 0; i < count; ++i) {
        const float x = in[i], t = tanhf(slope * (x + bend * x * x * x));
        in_grad[i] += out_grad[i] * ((1 + t) / 2 + x / 2 * (1 - t * t) * slope * (1 + 3 * bend * x * x));
    }
}

float cross_entropy(float* logits, const int* targets, int rows, int V) {
    float loss = 0;
    for (int row = 0; row < rows; ++row, logits += V) {
        softmax(logits, V);
        loss -= logf(logits[targets[row]]) / (float)rows;
        logits[targets[row]] -= 1;
        for (int v = 0; v < V; ++v) logits[v] /= (float)rows;
    }
    return loss;
}
