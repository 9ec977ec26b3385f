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

static void check_name(bdforge_status got, bdforge_status wanted, const char* part) {
    expect(got, wanted, part);
    require(strlen(bdforge_message()) < 4096 && strchr(bdforge_message(), 27) == NULL, "a message for people");
}

/* Names of a few megabytes, and of bytes that terminals obey, wherever a call takes one. */
static void refuse_name(bdforge_device* device, bdforge_gemm* gemm, const char* name, const char* part) {
    const bdforge_size size = {name, 1}, sizes[] = {{"M", M}, {"K", K}, {"N", N}};
    const bdforge_memory memory = {name, weights};
    const bdforge_parts odd_size = {&size, 1, NULL, 0, NULL, 0}, odd_memory = {sizes, 3, &memory, 1, NULL, 0};
    bdforge_job *none, *job = bdforge_gemm_job(gemm);
    bdforge_device* no_device;
    bdforge_design* no_design;
    bdforge_resident* resident;
    size_t stride;
    void* data;
    check_name(bdforge_device_open(name, &no_device), BDFORGE_DEVICE, part);
    check_name(bdforge_design_load(device, name, &no_design), BDFORGE_FILE, "manifest.json");
    check_name(bdforge_resident_create(design, name, sizes, 3, &resident), BDFORGE_ARGUMENT, part);
    check_name(bdforge_resident_create(design, "B", &size, 1, &resident), BDFORGE_ARGUMENT, part);
    check_name(bdforge_job_create(design, &odd_size, &none), BDFORGE_ARGUMENT, part);
    check_name(bdforge_job_create(design, &odd_memory, &none), BDFORGE_ARGUMENT, part);
    check_name(bdforge_job_place(job, name, weights, 1, 0), BDFORGE_ARGUMENT, part);
    check_name(bdforge_job_fetch(job, name, weights, 1, 0), BDFORGE_ARGUMENT, part);
    check_name(bdforge_job_memory(job, name, &data, &stride), BDFORGE_ARGUMENT, part);
}

static void refuse_names(bdforge_device* device, bdforge_gemm* gemm) {
    const size_t bytes = (size_t)4 << 20;
    char* name = malloc(bytes + 1);
    require(name != NULL, "memory");
    memset(name, 'x', bytes);
    name[bytes] = 0;
    refuse_name(device, gemm, name, "xxxx");
    refuse_name(device, gemm, "\033[31m", "\\x1b[31m");
    free(name);
}

/* Weights are those of the design that packed them; outputs do not stay. */
static void refuse_other_weights(const bdforge_device* device, const char* path) {
    const bdforge_size sizes[] = {{"M", M}, {"K", K}, {"N", N}};
    bdforge_resident* none;
    bdforge_design* other;
    bdforge_gemm* no_gemm;
    expect(bdforge_design_load(device, path, &other), BDFORGE_OK, "");
    expect(bdforge_gemm_create(other, M, packed, &no_gemm), BDFORGE_ARGUMENT, "B was packed for another design");
    bdforge_design_free(other);
    expect(bdforge_resident_create(design, "C", sizes, 3, &none), BDFORGE_ARGUMENT, "operand C is an output");
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
    refuse_other_weights(device, words[1]);
    refuse_names(device, gemm);
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
