/* c_cache IMAGE DEVICE FOLDER TOKENS PIECE...: tokens that come in pieces over caches that grow where they are. `x` and
 * `angles` of all tokens come from files of FOLDER, `y` goes there. The memory is that of a problem of TOKENS. */
#include "c_expect.h"

enum { BYTES_MOST = 1 << 20 };

static char x[BYTES_MOST], angles[BYTES_MOST], y[BYTES_MOST];

static FILE* opened(const char* folder, const char* name, const char* mode) {
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE* file = fopen(path, mode);
    require(file != NULL, path);
    return file;
}

static size_t content(const char* folder, const char* name, char* array) {
    FILE* file = opened(folder, name, "rb");
    const size_t bytes = fread(array, 1, BYTES_MOST, file);
    fclose(file);
    return bytes;
}

static bdforge_job* of_tokens(const bdforge_job* largest, size_t tokens, size_t keys) {
    const bdforge_size sizes[] = {{"tokens", tokens}, {"keys", keys}};
    bdforge_job* job;
    expect(bdforge_job_resized(largest, sizes, 2, &job), BDFORGE_OK, "");
    return job;
}

int main(int count, char** words) {
    bdforge_device* device;
    bdforge_design* design;
    bdforge_job *largest, *larger;
    require(count > 5, "five words");
    const size_t all = (size_t)atoi(words[4]), x_bytes = content(words[3], "x", x) / all,
                 angle_bytes = content(words[3], "angles", angles) / all, y_bytes = x_bytes / 2;
    expect(bdforge_device_open(words[2], &device), BDFORGE_OK, "");
    expect(bdforge_design_load(device, words[1], &design), BDFORGE_OK, "");
    const bdforge_size sizes[] = {{"tokens", all}, {"keys", all}}, more = {"keys", all + 1};
    const bdforge_parts parts = {.sizes = sizes, .size_count = 2};
    expect(bdforge_job_create(design, &parts, &largest), BDFORGE_OK, "");
    expect(bdforge_job_resized(largest, &more, 1, &larger), BDFORGE_ARGUMENT, "make the largest job first");
    for (size_t first = 0, i = 5; i < (size_t)count; ++i) {
        const size_t tokens = (size_t)atoi(words[i]);
        bdforge_job* job = of_tokens(largest, tokens, first + tokens);
        expect(bdforge_job_place(job, "x", x + first * x_bytes, tokens * x_bytes, 0), BDFORGE_OK, "");
        expect(bdforge_job_place(job, "angles", angles + first * angle_bytes, tokens * angle_bytes, 0), BDFORGE_OK, "");
        expect(bdforge_job_run(job, 100000), BDFORGE_OK, "");
        expect(bdforge_job_fetch(job, "y", y + first * y_bytes, tokens * y_bytes, 0), BDFORGE_OK, "");
        bdforge_job_free(job);
        first += tokens;
    }
    FILE* file = opened(words[3], "y", "wb");
    require(fwrite(y, 1, all * y_bytes, file) == all * y_bytes, "y");
    fclose(file);
    bdforge_job_free(largest);
    bdforge_design_free(design);
    bdforge_device_free(device);
    return 0;
}
