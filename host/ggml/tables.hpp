#pragma once
/// The tables of functions by which ggml knows a backend. Its public headers name these types without their members;
/// order and meaning as in API versions 2 and 3 (ggml 0.25 to 0.27), which differ in the table of buffer types only: that
/// one is not here, for memory is the CPU backend's. What may be null is null unless this backend has it.

#include <ggml-backend.h>

#include <cstdint>

struct ggml_backend_reg {
    std::int32_t api_version;  // ggml takes a backend of its own version only
    const char* (*get_name)(ggml_backend_reg_t);
    std::size_t (*get_device_count)(ggml_backend_reg_t);
    ggml_backend_dev_t (*get_device)(ggml_backend_reg_t, std::size_t index);
    void* (*get_proc_address)(ggml_backend_reg_t, const char* name);
    void* context;
};

struct ggml_backend_device {
    const char* (*get_name)(ggml_backend_dev_t);
    const char* (*get_description)(ggml_backend_dev_t);
    void (*get_memory)(ggml_backend_dev_t, std::size_t* free, std::size_t* total);
    enum ggml_backend_dev_type (*get_type)(ggml_backend_dev_t);
    void (*get_props)(ggml_backend_dev_t, ggml_backend_dev_props*);
    ggml_backend_t (*init_backend)(ggml_backend_dev_t, const char* parameters);
    ggml_backend_buffer_type_t (*get_buffer_type)(ggml_backend_dev_t);
    ggml_backend_buffer_type_t (*get_host_buffer_type)(ggml_backend_dev_t);
    ggml_backend_buffer_t (*buffer_from_host_ptr)(ggml_backend_dev_t, void* data, std::size_t bytes,
                                                  std::size_t largest);
    bool (*supports_op)(ggml_backend_dev_t, const ggml_tensor*);
    bool (*supports_buft)(ggml_backend_dev_t, ggml_backend_buffer_type_t);
    bool (*offload_op)(ggml_backend_dev_t, const ggml_tensor*);
    void* event_calls[3];  // new, free, synchronize
    ggml_backend_reg_t reg;
    void* context;
};

/// A stream: what a graph is given to.
struct ggml_backend {
    ggml_guid_t guid;
    const char* (*get_name)(ggml_backend_t);
    void (*free)(ggml_backend_t);  // of the stream itself, too
    void* asynchronous_copies[5];  // set, get, both in two dimensions, copy
    void (*synchronize)(ggml_backend_t);
    void* plan_calls[4];  // create, free, update, compute
    ggml_status (*graph_compute)(ggml_backend_t, ggml_cgraph*);
    void* event_calls[2];  // record, wait
    void* graph_optimize;
    ggml_backend_dev_t device;
    void* context;
};

static_assert(sizeof(ggml_backend_reg) == 6 * sizeof(void*) && sizeof(ggml_backend_device) == 17 * sizeof(void*) &&
                  sizeof(ggml_backend) == 19 * sizeof(void*),
              "every member is a pointer's size");
