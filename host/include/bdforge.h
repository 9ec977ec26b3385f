#ifndef BDFORGE_H
#define BDFORGE_H
/* bdforge for C: operators on AMD's NPU, such as int8 activations by ternary weights; docs/embedding.md shows each call.
 *
 * Every call that can fail returns a bdforge_status; bdforge_message() then says what, where, the limit and the next
 * step. Handles are made by one call and given back by its *_free (NULL is fine). A handle may be freed in any order:
 * what others still need stays. Any thread may use any handle. Where two mix what they want of one, the call is refused
 * with BDFORGE_STATE: calls that overlap, an operand that another thread placed and no run has read, results of another
 * thread's run. What is written to a handle's memory directly, nobody can tell apart: lock it, or give each thread its own.
 * A handle is freed when no call on it is under way.
 */
#include <stddef.h>
#include <stdint.h>

#define BDFORGE_VERSION "0.2.0"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum bdforge_status {
    BDFORGE_OK = 0,
    BDFORGE_FILE = 1,     /* a file is missing or not what its name says */
    BDFORGE_MANIFEST = 2, /* the manifest does not fit the design, the device or this library */
    BDFORGE_DEVICE = 3,   /* no NPU, or the driver refuses */
    BDFORGE_ARGUMENT = 4, /* sizes, pointers or strides that the call cannot take */
    BDFORGE_WEIGHTS = 5,  /* weights are truncated or not ternary */
    BDFORGE_RUN = 6,      /* the device reports that the run failed */
    BDFORGE_TIMEOUT = 7,  /* no result in time; the run may still be going */
    BDFORGE_STATE = 8,    /* the call comes at the wrong moment */
    BDFORGE_INTERNAL = 9  /* out of memory, or a fault of the library */
} bdforge_status;

typedef struct bdforge_device bdforge_device;
typedef struct bdforge_design bdforge_design;
typedef struct bdforge_weights bdforge_weights;
typedef struct bdforge_weights bdforge_resident; /* any operand that stays; weights are the B of a GEMM */
typedef struct bdforge_job bdforge_job;
typedef struct bdforge_gemm bdforge_gemm;
typedef struct bdforge_batch bdforge_batch;
typedef struct bdforge_layers bdforge_layers;
typedef struct bdforge_text bdforge_text;

/* Message of this thread's last failed call, "" when none failed; valid until its next call. */
const char* bdforge_message(void);

/* Name of a status, such as "TIMEOUT". */
const char* bdforge_status_name(bdforge_status status);

/* XRT's version that the library was built with, "none" without. */
const char* bdforge_xrt_version(void);

/* Opens a device: XRT's index "0", a PCI address, or "emulated", which needs no NPU and is slow. */
bdforge_status bdforge_device_open(const char* name, bdforge_device** device);
/* The device's name, such as "NPU Strix Halo". */
const char* bdforge_device_name(const bdforge_device* device);
/* 1 for an NPU, 0 for the emulated array. */
int bdforge_device_is_npu(const bdforge_device* device);
void bdforge_device_free(bdforge_device* device);

/* Loads an xclbin (or the folder that it was built into, or a full ELF, *.elf) with the manifest.json beside it. Once per process is enough for all sizes. */
bdforge_status bdforge_design_load(const bdforge_device* device, const char* path, bdforge_design** design);
void bdforge_design_free(bdforge_design* design);

/* Keeps B, K x N, as the array reads it; the caller's may be freed then. Designs with packed B take it row-major
 * (ternary: int8 of -1, 0, 1) and pack it, others take it in their own order; `stride`: elements from line to line,
 * 0: no gap. */
bdforge_status bdforge_weights_pack(const bdforge_design* design, const void* weights, size_t K, size_t N,
                                    size_t stride, bdforge_weights** packed);
/* Takes weights that are in that form already, for the same tile sizes. BDFORGE_WEIGHTS for bytes that the design packs
 * of no weights, whose number, codes or padding are others. */
bdforge_status bdforge_weights_packed(const bdforge_design* design, const void* data, size_t bytes, size_t K, size_t N,
                                      bdforge_weights** packed);
/* Bytes of the packed form. */
size_t bdforge_weights_bytes(const bdforge_weights* weights);
void bdforge_weights_free(bdforge_weights* weights);

/* C (M x N) = A (M x K) * weights, with the design's types and orders, in memory of the library. */
bdforge_status bdforge_gemm_create(const bdforge_design* design, size_t M, const bdforge_weights* weights,
                                   bdforge_gemm** gemm);
/* The same with memory of the caller: aligned to 4096 bytes, alive as long as the handle, A and C apart. NULL: the
 * library's. Strides in elements from line to line (rows of row-major operands, columns of column-major ones), 0:
 * no gap. */
bdforge_status bdforge_gemm_create_shared(const bdforge_design* design, size_t M, const bdforge_weights* weights,
                                          void* a, size_t a_stride, void* c, size_t c_stride, bdforge_gemm** gemm);
void bdforge_gemm_free(bdforge_gemm* gemm);

/* Where A is to be written and C can be read, and the elements from line to line. The typed ones are NULL, with a
 * message, where A is not int8 or C not int32. */
int8_t* bdforge_gemm_a(bdforge_gemm* gemm);
void* bdforge_gemm_a_memory(bdforge_gemm* gemm);
size_t bdforge_gemm_a_stride(const bdforge_gemm* gemm);
const int32_t* bdforge_gemm_c(const bdforge_gemm* gemm);
const void* bdforge_gemm_c_memory(const bdforge_gemm* gemm);
size_t bdforge_gemm_c_stride(const bdforge_gemm* gemm);

/* Runs and waits, at most timeout_ms (>= 1; with 0 nothing starts). */
bdforge_status bdforge_gemm_run(bdforge_gemm* gemm, unsigned timeout_ms);
/* Starts; the processor is free until bdforge_gemm_wait. */
bdforge_status bdforge_gemm_run_async(bdforge_gemm* gemm);
/* Waits for bdforge_gemm_run_async. After BDFORGE_TIMEOUT it may be called again. */
bdforge_status bdforge_gemm_wait(bdforge_gemm* gemm, unsigned timeout_ms);
/* Copies A in, runs, copies C out; neither may overlap the library's own. Strides in elements, 0: no gap. */
bdforge_status bdforge_gemm_run_copy(bdforge_gemm* gemm, const void* a, size_t a_stride, void* c, size_t c_stride,
                                     unsigned timeout_ms);
/* out[i][j] = C[i][j] * row_scales[i] * column_scales[j] * scale for int32 C; NULL scales are 1; stride 0: no gap. */
bdforge_status bdforge_gemm_scaled(const bdforge_gemm* gemm, float* out, size_t stride, const float* row_scales,
                                   const float* column_scales, float scale);

/* GEMMs of designs on one array (one image on one device), submitted 24 at a time and run in order: each reads what those before it wrote. What the host gives
 * is there before the first one runs, and what it finds is what the last one left. Where a submission fails, its members run
 * again one by one; BDFORGE_RUN where one has overwritten what it, or one before it, reads. */
bdforge_status bdforge_batch_create(const bdforge_design* design, bdforge_gemm* const* gemms, size_t count,
                                    bdforge_batch** batch);
bdforge_status bdforge_batch_run(bdforge_batch* batch, unsigned timeout_ms);
bdforge_status bdforge_batch_run_async(bdforge_batch* batch);
bdforge_status bdforge_batch_wait(bdforge_batch* batch, unsigned timeout_ms);
void bdforge_batch_free(bdforge_batch* batch);

/* Jobs: any operator's problem, whose operands have the names that the design gives them.
 *
 * Arrays hold elements of the operand's type (bdforge_job_operand names it): types below a byte take a byte, bf16 two,
 * block floats come as float. `stride`: elements from line to line (rows of row-major operands, columns of column-major
 * ones), 0: no gap. `bytes` is the length of the array, of which nothing beyond is touched. */

/* A size by its parameter's name, such as {"M", 256}. Leading dimensions ("lda") may be left out: no gap. */
typedef struct bdforge_size {
    const char* name;
    size_t value;
} bdforge_size;

/* Memory of the caller for an operand, as for bdforge_gemm_create_shared. */
typedef struct bdforge_memory {
    const char* operand;
    void* data;
} bdforge_memory;

/* What a job is made of. Operands that are named nowhere have memory of the library. */
typedef struct bdforge_parts {
    const bdforge_size* sizes;
    size_t size_count;
    const bdforge_memory* memory;
    size_t memory_count;
    bdforge_resident* const* residents;
    size_t resident_count;
} bdforge_parts;

/* An operand: `name` and `type` live as long as the job; one axis is one row. */
typedef struct bdforge_operand {
    const char* name;
    const char* type;
    int output, column_major;
    size_t rows, columns, element_bytes;
} bdforge_operand;

/* The buffer of an operand that stays where the array reads it, for any number of jobs whose sizes are the same; only
 * those sizes are needed that the operand depends on. Not for outputs. Freed by bdforge_weights_free. */
bdforge_status bdforge_resident_create(const bdforge_design* design, const char* operand, const bdforge_size* sizes,
                                       size_t size_count, bdforge_resident** resident);
/* Writes an operand of that buffer; BDFORGE_WEIGHTS names the first value that its type does not hold, BDFORGE_STATE is for
 * one that a run is reading. */
bdforge_status bdforge_resident_place(bdforge_resident* resident, const char* operand, const void* data, size_t bytes,
                                      size_t stride);

bdforge_status bdforge_job_create(const bdforge_design* design, const bdforge_parts* parts, bdforge_job** job);
/* Another job of the same sizes in the same memory, but for `residents`, and for the buffers of `operands`, which are its
 * own: in a batch it works on what the one before it left, with weights of its own. What is shared is placed, written and
 * fetched by either; as for threads they are one handle, and outside of batches one runs at a time. */
bdforge_status bdforge_job_beside(const bdforge_job* job, const char* const* operands, size_t operand_count,
                                  bdforge_resident* const* residents, size_t resident_count, bdforge_job** beside);
/* An operand that stands where another job has one of its own, `theirs`. */
typedef struct bdforge_place {
    const char* operand;
    const char* theirs;
} bdforge_place;
/* A job of another design on the array of a job (of one image, on one device), some of whose operands stand where that one has
 * those that `places` name: in a batch it reads what that one left, without a copy. All that lies with one in a buffer is named.
 * As of bdforge_job_beside, one runs at a time. `parts` has sizes and residents, no memory. */
bdforge_status bdforge_job_create_beside(const bdforge_job* job, const bdforge_design* design, const bdforge_parts* parts,
                                         const bdforge_place* places, size_t place_count, bdforge_job** beside);
/* Another job in the same memory with the same residents, of other sizes; those that are left out stay. What lies at the
 * start of a buffer keeps its place, such as a cache that grows from run to run in the memory of the largest job. */
bdforge_status bdforge_job_resized(const bdforge_job* job, const bdforge_size* sizes, size_t size_count,
                                   bdforge_job** resized);
void bdforge_job_free(bdforge_job* job);
/* The job of a GEMM, whose epilogue's operands are row_scales, column_scales and bias; it goes with the GEMM. */
bdforge_job* bdforge_gemm_job(bdforge_gemm* gemm);

size_t bdforge_job_operand_count(const bdforge_job* job);
bdforge_status bdforge_job_operand(const bdforge_job* job, size_t index, bdforge_operand* operand);
/* Writes an input. Those that no call gives are 0, or what the design says for them, such as scales of 1. */
bdforge_status bdforge_job_place(bdforge_job* job, const char* operand, const void* data, size_t bytes, size_t stride);
/* Reads an output after a run. */
bdforge_status bdforge_job_fetch(const bdforge_job* job, const char* operand, void* data, size_t bytes, size_t stride);
/* Where to write an input or read an output without a copy, and the elements from line to line there. */
bdforge_status bdforge_job_memory(bdforge_job* job, const char* operand, void** data, size_t* stride);

/* As those of a GEMM. */
bdforge_status bdforge_job_run(bdforge_job* job, unsigned timeout_ms);
bdforge_status bdforge_job_run_async(bdforge_job* job);
bdforge_status bdforge_job_wait(bdforge_job* job, unsigned timeout_ms);
/* As of GEMMs; `design` is any one on the jobs' array. */
bdforge_status bdforge_batch_create_jobs(const bdforge_design* design, bdforge_job* const* jobs, size_t count,
                                         bdforge_batch** batch);

/* Layers of BitNet b1.58, by compositions of a layer whose tensors have roles: of several tokens behind others, of one token, or
 * both. The host gives states before the first layer and gets those behind the last one. */

/* What the layers of a model have in common; `gate`: "relu2" or "silu". */
typedef struct bdforge_model {
    size_t heads, key_heads, head_size;
    float epsilon, theta;
    const char* gate;
} bdforge_model;

/* A tensor of a layer by its role: a norm's floats, rows = 1 (attn_norm, attn_sub_norm, ffn_norm, ffn_sub_norm); or a matrix
 * (q, k, v, o, gate, up, down), int8 of -1, 0, 1, inputs x outputs, and the scale of its products. */
typedef struct bdforge_tensor {
    const char* role;
    const void* data;
    size_t rows, columns;
    float scale;
} bdforge_tensor;

bdforge_status bdforge_layers_create(bdforge_design* const* designs, size_t count, const bdforge_model* model,
                                     bdforge_layers** layers);
/* Packs the next layer; the caller's memory may be freed then. BDFORGE_STATE once there is a text. */
bdforge_status bdforge_layers_add(bdforge_layers* layers, const bdforge_tensor* tensors, size_t count);
/* Writes the floats of a matrix's row, one behind the other. */
typedef void (*bdforge_row)(void* context, size_t row, float* values);
/* Packs the model's end behind its layers, for a composition of that: the final norm, and a head of `vocabulary` rows of
 * bdforge_layers_width floats, of which it keeps int8 codes with a scale each. */
bdforge_status bdforge_layers_end(bdforge_layers* layers, const bdforge_tensor* final_norm, size_t vocabulary,
                                  bdforge_row row, void* context);
/* Elements of a token's states; rows of the head, 0 where it is the caller's. */
size_t bdforge_layers_width(const bdforge_layers* layers);
size_t bdforge_layers_vocabulary(const bdforge_layers* layers);
void bdforge_layers_free(bdforge_layers* layers);

/* A text under way, for one thread at a time: keys and values of its tokens, in memory for `room` of them at first, which
 * doubles whenever it is full. */
bdforge_status bdforge_text_create(const bdforge_layers* layers, size_t room, bdforge_text** text);
/* Tokens so far. */
size_t bdforge_text_tokens(const bdforge_text* text);
/* 1 where bdforge_text_run takes so many tokens next: any number, if there is a composition of several; else one, behind as
 * many as attention's tile has keys, its own counted. */
int bdforge_text_takes(const bdforge_text* text, size_t tokens);
/* The next tokens through all layers as one list: states in and out, tokens x width; `y` NULL: nobody wants them. After a
 * fault the text is as before; what timed out may still be at work in its memory: begin another text then. */
bdforge_status bdforge_text_run(bdforge_text* text, const float* x, size_t tokens, float* y, unsigned timeout_ms);
/* The same, and logits behind the last of them, bdforge_layers_vocabulary many: of one token by one list, where its design and
 * the model's end are of one image, loaded on one device. */
bdforge_status bdforge_text_next(bdforge_text* text, const float* x, size_t tokens, float* y, float* logits,
                                 unsigned timeout_ms);
/* Logits, bdforge_layers_vocabulary of them, behind the last token that ran here (`x` NULL), or of the states of one that ran
 * elsewhere. */
bdforge_status bdforge_text_logits(bdforge_text* text, const float* x, float* logits, unsigned timeout_ms);
/* Keys, turned, and values of tokens of one layer, tokens x key heads x head size. */
bdforge_status bdforge_text_read(const bdforge_text* text, size_t layer, size_t first, size_t tokens, float* keys,
                                 float* values);
/* Takes those of the next tokens, which ran elsewhere: an array of each of `layers` layers. */
bdforge_status bdforge_text_extend(bdforge_text* text, size_t tokens, const float* const* keys,
                                   const float* const* values, size_t layers);
void bdforge_text_free(bdforge_text* text);

#ifdef __cplusplus
}
#endif
#endif
