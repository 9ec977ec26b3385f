/* c_refusals DESIGN.xclbin DEVICE: sizes, strides and memory that no call may take, whatever they wrap to. Run under
 * sanitizers: one byte read beside the memory ends it. */
#include <stdint.h>

#include "c_expect.h"

enum { M = 64, K = 64, N = 64, PAGE = 4096, C_PAGES = 4 };

static const size_t huge[] = {(size_t)-1, (size_t)-1 / 2, (size_t)-1 / 255, (size_t)1 << 63, (size_t)1 << 56};
#define BEYOND "more than a process can address"

static int8_t* weights; /* from malloc, so that sanitizers know their end */
static bdforge_design* design;
static bdforge_weights* packed;

static void refuse_sizes_of_weights(size_t size) {
    bdforge_weights* none;
    expect(bdforge_weights_pack(design, weights, K, N, size, &none), BDFORGE_ARGUMENT, BEYOND);
    require(none == NULL, "a failed call leaves NULL");
    expect(bdforge_weights_pack(design, weights, size, N, 0, &none), BDFORGE_ARGUMENT, "is outside 1 to");
    expect(bdforge_weights_pack(design, weights, K, size, 0, &none), BDFORGE_ARGUMENT, "is outside 1 to");
    expect(bdforge_weights_packed(design, weights, 8, size, N, &none), BDFORGE_ARGUMENT, "is outside 1 to");
    expect(bdforge_weights_packed(design, weights, size, K, N, &none), BDFORGE_WEIGHTS, "bytes, got");
}

static void refuse_sizes_of_gemms(size_t size, void* memory) {
    bdforge_gemm* none;
    bdforge_batch* no_batch;
    expect(bdforge_gemm_create(design, size, packed, &none), BDFORGE_ARGUMENT, "is outside 1 to");
    expect(bdforge_gemm_create_shared(design, M, packed, memory, size, NULL, 0, &none), BDFORGE_ARGUMENT, BEYOND);
    expect(bdforge_gemm_create_shared(design, M, packed, NULL, 0, memory, size, &none), BDFORGE_ARGUMENT, BEYOND);
    require(none == NULL, "a failed call leaves NULL");
    expect(bdforge_batch_create(design, &none, size, &no_batch), BDFORGE_ARGUMENT, "");
}

static void refuse_sizes_of_runs(size_t size, bdforge_gemm* gemm, const void* a, void* c) {
    expect(bdforge_gemm_run_copy(gemm, a, size, c, 0, 1000), BDFORGE_ARGUMENT, BEYOND);
    expect(bdforge_gemm_run_copy(gemm, a, 0, c, size, 1000), BDFORGE_ARGUMENT, BEYOND);
    expect(bdforge_gemm_scaled(gemm, c, size, NULL, NULL, 1), BDFORGE_ARGUMENT, BEYOND);
}

static void refuse_other_codes(void) {
    uint8_t codes[K * N / 4];
    bdforge_weights* none;
    memset(codes, 0xFF, sizeof codes);
    expect(bdforge_weights_packed(design, codes, sizeof codes, K, N, &none), BDFORGE_WEIGHTS, "is 2, expected -1 to 1");
    require(none == NULL, "a failed call leaves NULL");
}

/* A and C of which every pair of pages is tried. */
static void refuse_overlaps(char* memory) {
    bdforge_gemm* gemm;
    int a, c;
    for (a = 0; a <= C_PAGES; ++a) {
        for (c = 0; c <= 1; ++c) {
            const int over = a >= c && a < c + C_PAGES;
            const bdforge_status status =
                bdforge_gemm_create_shared(design, M, packed, memory + a * PAGE, 0, memory + c * PAGE, 0, &gemm);
            expect(status, over ? BDFORGE_ARGUMENT : BDFORGE_OK, over ? "overlap in memory" : "");
            bdforge_gemm_free(gemm);
        }
    }
}

/* A time-out of 0 is refused before anything starts: the state is that of a GEMM that never ran. */
static void refuse_no_time(bdforge_gemm* gemm, const void* a, void* c) {
    bdforge_batch* batch;
    expect(bdforge_batch_create(design, &gemm, 1, &batch), BDFORGE_OK, "");
    expect(bdforge_gemm_run(gemm, 0), BDFORGE_ARGUMENT, "would wait for ever");
    expect(bdforge_gemm_wait(gemm, 1000), BDFORGE_STATE, "was not started");
    expect(bdforge_gemm_run_copy(gemm, a, 0, c, 0, 0), BDFORGE_ARGUMENT, "would wait for ever");
    expect(bdforge_gemm_wait(gemm, 1000), BDFORGE_STATE, "was not started");
    expect(bdforge_batch_run(batch, 0), BDFORGE_ARGUMENT, "would wait for ever");
    expect(bdforge_batch_wait(batch, 1000), BDFORGE_STATE, "was not started");
    expect(bdforge_gemm_run(gemm, 1000), BDFORGE_OK, "");
    bdforge_batch_free(batch);
}

int main(int count, char** words) {
    bdforge_device* device;
    bdforge_gemm* gemm;
    char* memory = aligned_alloc(PAGE, (C_PAGES + 1) * PAGE);
    int8_t* a = calloc(M * K, 1);
    int32_t* c = calloc(M * N, sizeof *c);
    size_t i;
    weights = calloc(K * N, 1);
    if (count != 3) return 2;
    require(memory != NULL && a != NULL && c != NULL && weights != NULL, "memory");
    expect(bdforge_device_open(words[2], &device), BDFORGE_OK, "");
    expect(bdforge_design_load(device, words[1], &design), BDFORGE_OK, "");
    expect(bdforge_weights_pack(design, weights, K, N, 0, &packed), BDFORGE_OK, "");
    expect(bdforge_gemm_create(design, M, packed, &gemm), BDFORGE_OK, "");
    for (i = 0; i < sizeof huge / sizeof *huge; ++i) {
        refuse_sizes_of_weights(huge[i]);
        refuse_sizes_of_gemms(huge[i], memory);
        refuse_sizes_of_runs(huge[i], gemm, a, c);
    }
    refuse_other_codes();
    refuse_overlaps(memory);
    refuse_no_time(gemm, a, c);
    bdforge_gemm_free(gemm);
    bdforge_weights_free(packed);
    bdforge_design_free(design);
    bdforge_device_free(device);
    free(memory), free(a), free(c), free(weights);
    puts("every refusal holds");
    return 0;
}
