/* c_threads DESIGN.xclbin DEVICE: threads that share every handle of the C API. A call is right, or refused as one of several
 * threads; no result is another thread's. */
#define _POSIX_C_SOURCE 200809L
#include <pthread.h>
#include <stdint.h>

#include "c_expect.h"

enum { THREADS = 6, ROUNDS = 12, M = 16, K = 32, N = 32 };

static bdforge_design* design;
static bdforge_weights* weights;
static bdforge_gemm* gemm;
static bdforge_job* job;
static bdforge_batch* batch;
static bdforge_gemm* members[2];
static pthread_barrier_t together;

/* What a thread multiplies: ones as weights, or twos; each sum tells whose A and which weights it is of. */
typedef struct {
    int number;
    int8_t a[M * K], ones[K * N];
    int32_t c[M * N];
    int done, refused;
} worker;

/* 1 for a call that did it, 0 for one that was refused as it must be. */
static int done(worker* own, bdforge_status status) {
    if (status == BDFORGE_OK) return ++own->done, 1;
    expect(status, BDFORGE_STATE, "");
    ++own->refused;
    return 0;
}

static void check_c(const worker* own) {
    int i;
    for (i = 0; i < M * N; ++i)
        if (own->c[i] != own->number * K) {
            fprintf(stderr, "thread %d: C[%d] is %d, expected %d\n", own->number, i, own->c[i], own->number * K);
            exit(1);
        }
}

static void run_copies(worker* own) {
    if (done(own, bdforge_gemm_run_copy(gemm, own->a, 0, own->c, 0, 10000))) check_c(own);
}

static void run_by_steps(worker* own) {
    bdforge_status status;
    if (!done(own, bdforge_job_place(job, "A", own->a, sizeof own->a, 0))) return;
    do status = bdforge_job_run(job, 10000);
    while (!done(own, status));
    if (done(own, bdforge_job_fetch(job, "C", own->c, sizeof own->c, 0))) check_c(own);
}

/* The rows of A are those of the batch alone, so any run of it is right. */
static void run_batches(worker* own) {
    bdforge_status status;
    int i;
    if (!done(own, bdforge_batch_run_async(batch))) return;
    do status = bdforge_batch_wait(batch, 10000);
    while (!done(own, status));
    for (i = 0; i < 2; ++i) done(own, bdforge_gemm_wait(members[i], 10)); /* nothing was started there */
}

/* Weights are of ones, whoever placed them. */
static void place_weights(worker* own) {
    if (own->number % 2 == 0) {
        done(own, bdforge_resident_place(weights, "B", own->ones, sizeof own->ones, 0));
    } else {
        bdforge_gemm* mine;
        expect(bdforge_gemm_create(design, M, weights, &mine), BDFORGE_OK, "");
        expect(bdforge_gemm_run_copy(mine, own->a, 0, own->c, 0, 10000), BDFORGE_OK, "");
        check_c(own);
        ++own->done;
        bdforge_gemm_free(mine);
    }
}

static void make_handles(worker* own) {
    bdforge_weights* mine;
    expect(bdforge_weights_pack(design, own->ones, K, N, 0, &mine), BDFORGE_OK, "");
    done(own, bdforge_gemm_a_memory(gemm) == NULL ? BDFORGE_STATE : BDFORGE_OK);
    bdforge_weights_free(mine);
}

static void (*const acts[])(worker*) = {run_copies, run_by_steps, run_batches, place_weights, make_handles};
static void (*act)(worker*);

static void* work(void* given) {
    int round;
    const worker* own = given;
    pthread_barrier_wait(&together);
    for (round = 0; round < ROUNDS || own->done == 0; ++round) act(given); /* all of the first may be refused */
    return NULL;
}

static void run_all(void) {
    static worker workers[THREADS];
    pthread_t threads[THREADS];
    int i;
    memset(workers, 0, sizeof workers);
    for (i = 0; i < THREADS; ++i) {
        workers[i].number = i + 1;
        memset(workers[i].a, i + 1, sizeof workers[i].a);
        memset(workers[i].ones, 1, sizeof workers[i].ones);
        require(pthread_create(&threads[i], NULL, work, &workers[i]) == 0, "a thread");
    }
    for (i = 0; i < THREADS; ++i) pthread_join(threads[i], NULL);
}

int main(int count, char** words) {
    const bdforge_size sizes[] = {{"M", M}, {"K", K}, {"N", N}};
    int8_t ones[K * N];
    bdforge_device* device;
    size_t i;
    if (count != 3) return 2;
    memset(ones, 1, sizeof ones);
    expect(bdforge_device_open(words[2], &device), BDFORGE_OK, "");
    expect(bdforge_design_load(device, words[1], &design), BDFORGE_OK, "");
    expect(bdforge_weights_pack(design, ones, K, N, 0, &weights), BDFORGE_OK, "");
    expect(bdforge_gemm_create(design, M, weights, &gemm), BDFORGE_OK, "");
    for (i = 0; i < 2; ++i) expect(bdforge_gemm_create(design, M, weights, &members[i]), BDFORGE_OK, "");
    expect(bdforge_batch_create(design, members, 2, &batch), BDFORGE_OK, "");
    {
        bdforge_resident* const residents[] = {weights};
        const bdforge_parts parts = {sizes, 3, NULL, 0, residents, 1};
        expect(bdforge_job_create(design, &parts, &job), BDFORGE_OK, "");
    }
    pthread_barrier_init(&together, NULL, THREADS);
    for (i = 0; i < sizeof acts / sizeof *acts; ++i) act = acts[i], run_all();
    pthread_barrier_destroy(&together);
    bdforge_batch_free(batch);
    bdforge_job_free(job);
    bdforge_gemm_free(members[0]);
    bdforge_gemm_free(members[1]);
    bdforge_gemm_free(gemm);
    bdforge_weights_free(weights);
    bdforge_design_free(design);
    bdforge_device_free(device);
    puts("no thread got another's");
    return 0;
}
