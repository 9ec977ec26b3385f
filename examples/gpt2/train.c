/* train TEXT [DESIGN.xclbin... [-d DEVICE]]: trains a small GPT-2 on the bytes of a file, and tells the loss of every step.
 * Its linear layers run on the designs, GEMMs of bf16, on an NPU (XRT's index, "0" unless named) or on "emulated"; without
 * a design on the processor. With several designs of different layouts the host transposes less. */
#include <bdforge_llmc.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model.h"

enum { STEPS = 20, DESIGNS = 3, TEXT_MOST = 1 << 16 };

static int fail(const char* what, const char* why) {
    fprintf(stderr, "train: %s: %s\n", what, why);
    return 2;
}

/* Bytes of a file, at least a batch of them; 0 where it has fewer. */
static size_t read_text(const char* path, unsigned char* text) {
    FILE* const file = fopen(path, "rb");
    if (file == NULL) return 0;
    const size_t count = fread(text, 1, TEXT_MOST, file);
    fclose(file);
    for (size_t i = 0; i < count; ++i) text[i] %= VOCABULARY;
    return count > ROWS ? count : 0;
}

/* Loads the designs on the device; 0, or what to end with. The library keeps what it needs of them. */
static int start(const char* device_name, char* const* paths, size_t count) {
    const bdforge_llmc_options options = {1, 60000}; /* weights change only where bdforge_llmc_updated is called */
    bdforge_device* device = NULL;
    bdforge_design* designs[DESIGNS] = {NULL};
    size_t loaded = 0;
    if (bdforge_device_open(device_name, &device) != BDFORGE_OK) return fail(device_name, bdforge_message());
    while (loaded < count && bdforge_design_load(device, paths[loaded], &designs[loaded]) == BDFORGE_OK) ++loaded;
    const int done = loaded == count && bdforge_llmc_start(designs, count, &options) == BDFORGE_OK;
    const int code = done ? 0 : fail(paths[loaded < count ? loaded : 0], bdforge_message());
    for (size_t i = 0; i < loaded; ++i) bdforge_design_free(designs[i]);
    bdforge_device_free(device);
    return code;
}

/* Adam with decoupled decay of weights; `moments` are the means of gradients and of their squares. */
static void optimise(model* trained, float* moments, int step) {
    const float rate = 3e-3f, first = 0.9f, second = 0.99f, decay = 0.01f;
    for (size_t i = 0; i < PARAMETERS; ++i) {
        float *const mean = &moments[2 * i], *const square = &moments[2 * i + 1], grad = trained->gradients[i];
        *mean = first * *mean + (1 - first) * grad;
        *square = second * *square + (1 - second) * grad * grad;
        const float m = *mean / (1 - powf(first, (float)step)), v = *square / (1 - powf(second, (float)step));
        trained->parameters[i] -= rate * (m / (sqrtf(v) + 1e-8f) + decay * trained->parameters[i]);
    }
    bdforge_llmc_updated();
}

static int train(const unsigned char* text, size_t bytes) {
    int tokens[ROWS], targets[ROWS];
    model trained;
    if (!model_create(&trained)) return fail("model", "out of memory");
    float* const moments = calloc(2 * PARAMETERS, sizeof(float));
    if (moments == NULL) return fail("model", "out of memory");
    printf("%d layers, %d parameters, batches of %d tokens\n", LAYERS, PARAMETERS, ROWS);
    for (int step = 1; step <= STEPS; ++step) {
        const size_t from = (size_t)step * ROWS % (bytes - ROWS);
        for (int i = 0; i < ROWS; ++i) tokens[i] = text[from + (size_t)i], targets[i] = text[from + (size_t)i + 1];
        printf("step %d: loss %.6f\n", step, (double)model_step(&trained, tokens, targets));
        optimise(&trained, moments, step);
    }
    const bdforge_llmc_counts done = bdforge_llmc_counted();
    printf("each step: %zu products on the device in %zu submissions, %zu on the processor; %zu weights copied\n",
           done.products / STEPS, done.submissions / STEPS, done.processor_products / STEPS, done.weights / STEPS);
    free(moments);
    model_free(&trained);
    return 0;
}

int main(int count, char** words) {
    static unsigned char text[TEXT_MOST];
    const int named = count > 3 && strcmp(words[count - 2], "-d") == 0;
    const int designs = count - 2 - 2 * named;
    if (designs < 0 || designs > DESIGNS) return fail("usage", "train TEXT [up to 3 DESIGN.xclbin [-d DEVICE]]");
    const size_t bytes = read_text(words[1], text);
    if (bytes == 0) return fail(words[1], "cannot be read, or is shorter than a batch");
    const int code = designs > 0 ? start(named ? words[count - 1] : "0", words + 2, (size_t)designs) : 0;
    if (code == 0) return train(text, bytes);
    return code;
}
