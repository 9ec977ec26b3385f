/* c_layers IMAGE DEVICE FOLDER TOKENS LAYERS: layers that a composition is, as one batch. Each works on the states that the
 * one before it left, with weights of its own, and keeps codes and scales. Arrays come from files of FOLDER, and go there:
 * `x` and `LAYER.NAME` in, `next` and `LAYER.NAME` out. */
#include "c_expect.h"

enum { LAYERS_MOST = 32, BYTES_MOST = 1 << 20 };

static char array[BYTES_MOST];
static const char* folder;

static FILE* opened(int layer, const char* name, const char* mode) {
    char path[4096];
    FILE* file;
    if (layer < 0)
        snprintf(path, sizeof path, "%s/%s", folder, name);
    else
        snprintf(path, sizeof path, "%s/%d.%s", folder, layer, name);
    file = fopen(path, mode);
    require(file != NULL, path);
    return file;
}

static size_t content(int layer, const char* name) {
    FILE* file = opened(layer, name, "rb");
    const size_t bytes = fread(array, 1, sizeof array, file);
    fclose(file);
    return bytes;
}

static void keep(const bdforge_job* job, int layer, const char* name) {
    bdforge_operand operand;
    size_t i = 0;
    FILE* file = opened(layer, name, "wb");
    do expect(bdforge_job_operand(job, i++, &operand), BDFORGE_OK, "");
    while (strcmp(operand.name, name) != 0);
    const size_t bytes = operand.rows * operand.columns * operand.element_bytes;
    expect(bdforge_job_fetch(job, name, array, sizeof array, 0), BDFORGE_OK, "");
    require(fwrite(array, 1, bytes, file) == bytes, name);
    fclose(file);
}

static bdforge_resident* weights_of(const bdforge_design* design, int layer) {
    const char* const names[] = {"w", "wa", "wb", "w2", "wc"};
    bdforge_resident* weights;
    expect(bdforge_resident_create(design, "w", NULL, 0, &weights), BDFORGE_OK, "");
    for (size_t i = 0; i < sizeof names / sizeof names[0]; ++i)
        expect(bdforge_resident_place(weights, names[i], array, content(layer, names[i]), 0), BDFORGE_OK, "");
    return weights;
}

int main(int count, char** words) {
    const char* const own[] = {"codes", "scales"};
    bdforge_device* device;
    bdforge_design* design;
    bdforge_job* jobs[LAYERS_MOST];
    bdforge_batch* batch;
    require(count == 6, "five words");
    folder = words[3];
    const int layers = atoi(words[5]);
    expect(bdforge_device_open(words[2], &device), BDFORGE_OK, "");
    expect(bdforge_design_load(device, words[1], &design), BDFORGE_OK, "");
    for (int layer = 0; layer < layers; ++layer) {
        bdforge_resident* weights = weights_of(design, layer);
        const bdforge_size tokens = {"tokens", (size_t)atoi(words[4])};
        const bdforge_parts parts = {.sizes = &tokens, .size_count = 1, .residents = &weights, .resident_count = 1};
        if (layer == 0)
            expect(bdforge_job_create(design, &parts, jobs), BDFORGE_OK, "");
        else
            expect(bdforge_job_beside(jobs[0], own, 2, &weights, 1, jobs + layer), BDFORGE_OK, "");
        bdforge_weights_free(weights);
    }
    expect(bdforge_batch_create_jobs(design, jobs, (size_t)layers, &batch), BDFORGE_OK, "");
    expect(bdforge_job_place(jobs[0], "x", array, content(-1, "x"), 0), BDFORGE_OK, "");
    expect(bdforge_batch_run(batch, 100000), BDFORGE_OK, "");
    keep(jobs[0], -1, "next");
    for (int layer = 0; layer < layers; ++layer) {
        for (size_t i = 0; i < 2; ++i) keep(jobs[layer], layer, own[i]);
        bdforge_job_free(jobs[layer]);
    }
    bdforge_batch_free(batch);
    bdforge_design_free(design);
    bdforge_device_free(device);
    return 0;
}
