/* c_program DESIGN.xclbin DEVICE [hangs]: every call of bdforge.h, as docs/embedding.md shows them; or one GEMM on a
 * device that hangs, with everything freed behind its back. */
#include "c_expect.h"

enum { M = 20, K = 64, N = 72 };

static int8_t a[M * K], weights[K * N];
static int32_t expected[M * N], c[M * N];
static float scaled[M * N], row_scales[M], column_scales[N];

static void make_operands(void) {
    int i, k;
    for (i = 0; i < M * K; ++i) a[i] = (int8_t)(i * 37 % 255 - 127);
    for (i = 0; i < K * N; ++i) weights[i] = (int8_t)(i * 7 / 5 % 3 - 1);
    for (i = 0; i < M * N; ++i)
        for (k = 0; k < K; ++k) expected[i] += a[i / N * K + k] * weights[k * N + i % N];
    for (i = 0; i < M; ++i) row_scales[i] = 0.5f;
    for (i = 0; i < N; ++i) column_scales[i] = 4;
}

static void check_c(const int32_t* got, size_t stride, const char* what) {
    int i;
    for (i = 0; i < M * N; ++i) require(got[(size_t)(i / N) * stride + i % N] == expected[i], what);
}

static void check_errors(const bdforge_device* device, const bdforge_design* design, const bdforge_weights* packed) {
    bdforge_device* none = NULL;
    bdforge_design* no_design = NULL;
    bdforge_weights* no_weights = NULL;
    bdforge_gemm* no_gemm = NULL;
    bdforge_batch* no_batch = NULL;
    int8_t wrong = 3;
    expect(bdforge_device_open("no such device", &none), BDFORGE_DEVICE, "no such device");
    require(none == NULL, "a failed call leaves NULL");
    expect(bdforge_device_open(NULL, &none), BDFORGE_ARGUMENT, "name is NULL");
    expect(bdforge_device_open("emulated", NULL), BDFORGE_ARGUMENT, "place is NULL");
    expect(bdforge_design_load(device, "/no/such.xclbin", &no_design), BDFORGE_FILE, "/no/manifest.json");
    expect(bdforge_design_load(NULL, "x", &no_design), BDFORGE_ARGUMENT, "device is NULL");
    expect(bdforge_weights_pack(design, weights, 0, N, 0, &no_weights), BDFORGE_ARGUMENT, "K = 0");
    expect(bdforge_weights_pack(design, &wrong, 1, 1, 0, &no_weights), BDFORGE_WEIGHTS, "is 3");
    expect(bdforge_weights_packed(design, weights, 5, K, N, &no_weights), BDFORGE_WEIGHTS, "got 5");
    expect(bdforge_gemm_create(design, 0, packed, &no_gemm), BDFORGE_ARGUMENT, "M = 0");
    expect(bdforge_gemm_create_shared(design, M, packed, a + 1, 0, NULL, 0, &no_gemm), BDFORGE_ARGUMENT, "A ");
    expect(bdforge_gemm_run(NULL, 1), BDFORGE_ARGUMENT, "gemm is NULL");
    expect(bdforge_batch_create(design, NULL, 1, &no_batch), BDFORGE_ARGUMENT, "gemms is NULL");
    expect(bdforge_batch_create(design, NULL, 0, &no_batch), BDFORGE_ARGUMENT, "at least one");
    expect(bdforge_batch_create(design, &no_gemm, (size_t)-1, &no_batch), BDFORGE_ARGUMENT, "than a process can address");
    expect(bdforge_resident_create(design, "C", NULL, 0, &no_weights), BDFORGE_ARGUMENT, "operand C is an output");
    expect(bdforge_resident_create(design, "\033[31m", NULL, 0, &no_weights), BDFORGE_ARGUMENT, "\\x1b[31m");
    require(no_design == NULL && no_weights == NULL && no_gemm == NULL && no_batch == NULL, "a failed call leaves NULL");
}

/* Weights are those of the design that packed them. */
static void check_other_design(const bdforge_device* device, const char* path, const bdforge_weights* packed) {
    bdforge_design* other;
    bdforge_gemm* none;
    expect(bdforge_design_load(device, path, &other), BDFORGE_OK, "");
    expect(bdforge_gemm_create(other, M, packed, &none), BDFORGE_ARGUMENT, "B was packed for another design");
    bdforge_design_free(other);
}

static void run_gemm(bdforge_gemm* gemm) {
    int i;
    size_t row;
    for (row = 0; row < M; ++row) memcpy(bdforge_gemm_a(gemm) + row * bdforge_gemm_a_stride(gemm), a + row * K, K);
    expect(bdforge_gemm_run(gemm, 1000), BDFORGE_OK, "");
    check_c(bdforge_gemm_c(gemm), bdforge_gemm_c_stride(gemm), "run");
    expect(bdforge_gemm_wait(gemm, 1000), BDFORGE_STATE, "was not started");
    expect(bdforge_gemm_run_async(gemm), BDFORGE_OK, "");
    expect(bdforge_gemm_wait(gemm, 0), BDFORGE_ARGUMENT, "for ever");
    expect(bdforge_gemm_wait(gemm, 1000), BDFORGE_OK, "");
    expect(bdforge_gemm_run_copy(gemm, a, 0, c, 0, 1000), BDFORGE_OK, "");
    check_c(c, N, "run with copies");
    expect(bdforge_gemm_scaled(gemm, scaled, 0, row_scales, column_scales, 2), BDFORGE_OK, "");
    for (i = 0; i < M * N; ++i) require(scaled[i] == 4 * (float)expected[i], "scaled");
}

static void run_shared(const bdforge_design* design, const bdforge_weights* packed) {
    int8_t* own_a = aligned_alloc(4096, 4096);
    int32_t* own_c = aligned_alloc(4096, 8192);
    bdforge_gemm* gemm;
    require(own_a != NULL && own_c != NULL, "memory");
    memcpy(own_a, a, sizeof a);
    expect(bdforge_gemm_create_shared(design, M, packed, own_a, 0, own_c, 0, &gemm), BDFORGE_OK, "");
    expect(bdforge_gemm_run(gemm, 1000), BDFORGE_OK, "");
    check_c(own_c, N, "shared memory");
    bdforge_gemm_free(gemm);
    free(own_a);
    free(own_c);
}

static void run_batch(const bdforge_design* design, bdforge_gemm* gemm) {
    bdforge_batch* batch;
    expect(bdforge_batch_create(design, &gemm, 1, &batch), BDFORGE_OK, "");
    expect(bdforge_batch_run(batch, 1000), BDFORGE_OK, "");
    expect(bdforge_batch_run_async(batch), BDFORGE_OK, "");
    expect(bdforge_batch_wait(batch, 1000), BDFORGE_OK, "");
    check_c(bdforge_gemm_c(gemm), bdforge_gemm_c_stride(gemm), "batch");
    bdforge_batch_free(batch);
}

static void check_job(bdforge_job* job) {
    int32_t found[M * N];
    expect(bdforge_job_fetch(job, "C", found, sizeof found, 0), BDFORGE_OK, "");
    check_c(found, N, "job");
}

/* The same product by names. */
static void run_jobs(const bdforge_design* design) {
    const bdforge_size kn[] = {{"K", K}, {"N", N}}, mkn[] = {{"M", M}, {"K", K}, {"N", N}}, twice[] = {{"K", K}, {"K", K}};
    int8_t* own_a = aligned_alloc(4096, 4096);
    const bdforge_memory memory[] = {{"A", own_a}};
    bdforge_resident *b, *none = NULL;
    bdforge_job *job, *beside, *both[2];
    bdforge_batch* batch;
    bdforge_operand operand;
    const char* const c_alone[] = {"C"};
    size_t stride;
    void* place;
    expect(bdforge_resident_create(design, "B", kn, 1, &none), BDFORGE_ARGUMENT, "depends on more sizes");
    expect(bdforge_resident_create(design, "B", twice, 2, &none), BDFORGE_ARGUMENT, "size K stands twice");
    require(none == NULL, "a failed call leaves NULL");
    expect(bdforge_resident_create(design, "B", kn, 2, &b), BDFORGE_OK, "");
    expect(bdforge_resident_place(b, "B", weights, 5, 0), BDFORGE_ARGUMENT, "B: an array of 5 bytes");
    expect(bdforge_resident_place(b, "B", weights, sizeof weights, 0), BDFORGE_OK, "");
    const bdforge_parts parts = {mkn, 3, memory, 1, &b, 1};
    expect(bdforge_job_create(design, &parts, &job), BDFORGE_OK, "");
    const bdforge_place places[] = {{"A", "A"}, {"C", "C"}}, odd[] = {{"A", "C"}};
    const bdforge_parts no_memory = {mkn, 3, NULL, 0, &b, 1};
    expect(bdforge_job_create_beside(job, design, &parts, places, 2, &beside), BDFORGE_ARGUMENT, "takes no memory");
    expect(bdforge_job_create_beside(job, design, &no_memory, odd, 1, &beside), BDFORGE_ARGUMENT, "does not lie where");
    expect(bdforge_job_create_beside(job, design, &no_memory, NULL, 1, &beside), BDFORGE_ARGUMENT, "places is NULL");
    expect(bdforge_job_create_beside(job, design, &no_memory, places, 2, &beside), BDFORGE_OK, "");
    expect(bdforge_job_memory(beside, "A", &place, &stride), BDFORGE_OK, "");
    require(place == own_a && stride == K, "memory of the job beside");
    bdforge_job_free(beside);
    bdforge_weights_free(b);
    expect(bdforge_job_memory(job, "A", &place, &stride), BDFORGE_OK, "");
    require(place == own_a && stride == K, "memory of the caller");
    expect(bdforge_job_place(job, "A", a, sizeof a, 0), BDFORGE_OK, "");
    expect(bdforge_job_place(job, "bias", a, sizeof a, 0), BDFORGE_ARGUMENT, "has no operand bias");
    require(bdforge_job_operand_count(job) == 3, "operands");
    expect(bdforge_job_operand(job, 2, &operand), BDFORGE_OK, "");
    require(strcmp(operand.name, "C") == 0 && operand.output && operand.rows == M && operand.columns == N, "C");
    expect(bdforge_job_operand(job, 3, &operand), BDFORGE_ARGUMENT, "operand 3 of 3");
    expect(bdforge_job_run(job, 100000), BDFORGE_OK, "");
    check_job(job);
    expect(bdforge_job_run_async(job), BDFORGE_OK, "");
    expect(bdforge_job_wait(job, 100000), BDFORGE_OK, "");
    expect(bdforge_job_beside(job, c_alone, 1, NULL, 1, &beside), BDFORGE_ARGUMENT, "residents is NULL");
    require(beside == NULL, "a failed call leaves NULL");
    expect(bdforge_job_beside(job, c_alone, 1, NULL, 0, &beside), BDFORGE_OK, "");
    both[0] = job, both[1] = beside;
    expect(bdforge_batch_create_jobs(design, both, 2, &batch), BDFORGE_OK, "");
    bdforge_job_free(job);
    expect(bdforge_batch_run(batch, 100000), BDFORGE_OK, "");
    check_job(beside);
    bdforge_batch_free(batch);
    bdforge_job_free(beside);
    free(own_a);
}

static void time_out_in_batch(const bdforge_design* design, const bdforge_weights* packed) {
    bdforge_gemm* gemm;
    bdforge_batch* batch;
    expect(bdforge_gemm_create(design, M, packed, &gemm), BDFORGE_OK, "");
    expect(bdforge_batch_create(design, &gemm, 1, &batch), BDFORGE_OK, "");
    expect(bdforge_batch_run(batch, 50), BDFORGE_TIMEOUT, "the batch of 1: no result after 50 ms");
    bdforge_batch_free(batch);
    bdforge_gemm_free(gemm);
}

static void time_out(bdforge_gemm* gemm) {
    expect(bdforge_gemm_run(gemm, 50), BDFORGE_TIMEOUT, "no result after 50 ms");
    expect(bdforge_gemm_run(gemm, 50), BDFORGE_STATE, "is running");
    expect(bdforge_gemm_wait(gemm, 1), BDFORGE_TIMEOUT, "no result after 1 ms");
}

int main(int count, char** words) {
    bdforge_device* device;
    bdforge_design* design;
    bdforge_weights* packed;
    bdforge_gemm* gemm;
    const int hangs = count == 4;
    if (count != 3 && !hangs) return 2;
    make_operands();
    expect(bdforge_device_open(words[2], &device), BDFORGE_OK, "");
    require(bdforge_device_name(device)[0] != '\0' && !bdforge_device_is_npu(device), "device: NPUs here are emulated");
    expect(bdforge_design_load(device, words[1], &design), BDFORGE_OK, "");
    expect(bdforge_weights_pack(design, weights, K, N, 0, &packed), BDFORGE_OK, "");
    require(bdforge_weights_bytes(packed) == K * 96 / 4, "bytes of packed weights");
    check_errors(device, design, packed);
    check_other_design(device, words[1], packed);
    expect(bdforge_gemm_create(design, M, packed, &gemm), BDFORGE_OK, "");
    bdforge_device_free(device); /* what others need stays */
    if (hangs) {
        time_out_in_batch(design, packed);
        bdforge_weights_free(packed);
        time_out(gemm);
        bdforge_gemm_free(gemm);
        bdforge_design_free(design);
        return 0;
    }
    bdforge_weights_free(packed);
    run_gemm(gemm);
    run_batch(design, gemm);
    require(bdforge_job_operand_count(bdforge_gemm_job(gemm)) == 3, "the job of a GEMM");
    run_jobs(design);
    bdforge_gemm_free(gemm);
    expect(bdforge_weights_pack(design, weights, K, N, N, &packed), BDFORGE_OK, "");
    run_shared(design, packed);
    bdforge_weights_free(packed);
    bdforge_design_free(design);
    bdforge_gemm_free(NULL);
    printf("bdforge %s, XRT %s: every call works\n", BDFORGE_VERSION, bdforge_xrt_version());
    return 0;
}
