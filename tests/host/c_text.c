/* c_text DEVICE FOLDER DESIGNS ROOM PIECE...: a text by the layers of a tiny BitNet, in pieces of so many tokens; with '+'
 * before them, they ran elsewhere. Files of FOLDER: `model` (numbers, then the gate), `LAYER.ROLE`, `LAYER.scales`, `x`, and
 * what ran elsewhere, `LAYER.k_before` and `LAYER.v_before`; `y`, and `LAYER.keys` and `LAYER.values` of all tokens, go
 * there; with `head` and `final_norm` also `logits` behind the last token of each piece, of 0 where it ran elsewhere. DESIGNS have commas between them. A fault of the library's is printed, and the exit code is its status. */
#include "c_expect.h"

enum { DESIGNS_MOST = 4, PIECES_MOST = 32, FLOATS_MOST = 1 << 18, LAYERS_MOST = 4, ROLES = 11 };

static const char* folder;
static float x[FLOATS_MOST], y[FLOATS_MOST], head[FLOATS_MOST], norm[FLOATS_MOST], logits[FLOATS_MOST], k[LAYERS_MOST][FLOATS_MOST], v[LAYERS_MOST][FLOATS_MOST];
static struct {
    size_t hidden, inner, layers;
    bdforge_model of;
    char gate[16];
} model;

static void good(bdforge_status status) {
    if (status == BDFORGE_OK) return;
    fprintf(stderr, "%s\n", bdforge_message());
    exit((int)status);
}

static FILE* opened(int layer, const char* name, const char* mode) {
    char path[4096];
    if (layer < 0)
        snprintf(path, sizeof path, "%s/%s", folder, name);
    else
        snprintf(path, sizeof path, "%s/%d.%s", folder, layer, name);
    FILE* file = fopen(path, mode);
    require(file != NULL, path);
    return file;
}

static size_t content(int layer, const char* name, void* data, size_t most) {
    FILE* file = opened(layer, name, "rb");
    const size_t bytes = fread(data, 1, most, file);
    fclose(file);
    return bytes;
}

static void keep(int layer, const char* name, const float* data, size_t count) {
    FILE* file = opened(layer, name, "wb");
    require(fwrite(data, sizeof *data, count, file) == count, name);
    fclose(file);
}

static void read_model(void) {
    FILE* file = opened(-1, "model", "r");
    const int found = fscanf(file, "%zu %zu %zu %zu %zu %zu %f %f %15s", &model.hidden, &model.inner, &model.layers,
                             &model.of.heads, &model.of.key_heads, &model.of.head_size, &model.of.epsilon,
                             &model.of.theta, model.gate);
    require(found == 9, "model");
    model.of.gate = model.gate;
    fclose(file);
}

static void add(bdforge_layers* layers, int layer) {
    static char data[ROLES][1 << 18];
    float scales[7];
    const size_t wide = model.of.heads * model.of.head_size, narrow = model.of.key_heads * model.of.head_size;
    bdforge_tensor tensors[ROLES] = {
        {"q", NULL, model.hidden, wide, 0},         {"k", NULL, model.hidden, narrow, 0},
        {"v", NULL, model.hidden, narrow, 0},       {"o", NULL, wide, model.hidden, 0},
        {"gate", NULL, model.hidden, model.inner, 0}, {"up", NULL, model.hidden, model.inner, 0},
        {"down", NULL, model.inner, model.hidden, 0}, {"attn_norm", NULL, 1, model.hidden, 0},
        {"attn_sub_norm", NULL, 1, wide, 0},        {"ffn_norm", NULL, 1, model.hidden, 0},
        {"ffn_sub_norm", NULL, 1, model.inner, 0},
    };
    content(layer, "scales", scales, sizeof scales);
    for (size_t i = 0; i < ROLES; ++i) {
        tensors[i].data = data[i];
        if (i < 7) tensors[i].scale = scales[i];
        content(layer, tensors[i].role, data[i], sizeof data[i]);
    }
    good(bdforge_layers_add(layers, tensors, ROLES));
    expect(bdforge_layers_add(layers, tensors, ROLES - 1), BDFORGE_ARGUMENT, "the layer has no tensor ffn_sub_norm");
}

static void head_row(void* context, size_t row, float* values) {
    require(context == head, "another context");
    memcpy(values, head + row * model.hidden, model.hidden * sizeof *values);
}

static void end(bdforge_layers* layers) {
    const bdforge_tensor tensor = {"final_norm", norm, 1, model.hidden, 1};
    const size_t rows = content(-1, "head", head, sizeof head) / sizeof *head / model.hidden;
    content(-1, "final_norm", norm, sizeof norm);
    bdforge_text* text = NULL;
    expect(bdforge_text_create(layers, 1, &text), BDFORGE_ARGUMENT, "the model's end is not packed");
    expect(bdforge_layers_end(layers, &tensor, rows, NULL, NULL), BDFORGE_ARGUMENT, "the source of rows is NULL");
    good(bdforge_layers_end(layers, &tensor, rows, head_row, head));
    require(bdforge_layers_vocabulary(layers) == rows, "vocabulary");
    expect(bdforge_layers_add(layers, NULL, 0), BDFORGE_STATE, "the model's end is there already");
}

/* Logits behind the last token of a piece, which are there where it ran here; of zeros where it ran elsewhere. */
static void last_logits(bdforge_layers* layers, bdforge_text* text, int piece, int elsewhere) {
    const size_t rows = bdforge_layers_vocabulary(layers);
    static const float zeros[FLOATS_MOST];
    if (rows == 0) {
        expect(bdforge_text_logits(text, x, logits, 1000), BDFORGE_ARGUMENT, "the model's end is not packed");
        return;
    }
    float* const made = logits + (size_t)piece * rows;
    require(piece < PIECES_MOST, "pieces");
    if (elsewhere) expect(bdforge_text_logits(text, NULL, made, 1000), BDFORGE_ARGUMENT, "the last token ran elsewhere");
    float again[FLOATS_MOST / 64];
    require(rows <= sizeof again / sizeof *again, "vocabulary");
    good(bdforge_text_logits(text, elsewhere ? zeros : NULL, elsewhere ? made : again, 1000000));
    require(elsewhere || memcmp(again, made, rows * sizeof *made) == 0, "logits of one list, or of two");
}

/* The next tokens, which run here, or ran elsewhere. */
static void next(bdforge_text* text, size_t tokens, int elsewhere, float* ends) {
    const size_t first = bdforge_text_tokens(text), size = model.of.key_heads * model.of.head_size;
    const float *keys[LAYERS_MOST], *values[LAYERS_MOST];
    for (size_t layer = 0; layer < model.layers; ++layer)
        keys[layer] = k[layer] + first * size, values[layer] = v[layer] + first * size;
    if (elsewhere) {
        require(!bdforge_text_takes(text, tokens), "it takes what is to run elsewhere");
        expect(bdforge_text_run(text, x, tokens, y, 1000), BDFORGE_ARGUMENT, "run them elsewhere");
        expect(bdforge_text_extend(text, tokens, keys, values, model.layers - 1), BDFORGE_ARGUMENT, "give those of all");
        good(bdforge_text_extend(text, tokens, keys, values, model.layers));
        return;
    }
    require(bdforge_text_takes(text, tokens), "it does not take so many");
    const float* const from = x + first * model.hidden;
    float* const to = y + first * model.hidden;
    good(ends == NULL ? bdforge_text_run(text, from, tokens, to, 1000000)
                      : bdforge_text_next(text, from, tokens, to, ends, 1000000));
}

int main(int count, char** words) {
    bdforge_device* device;
    bdforge_design* designs[DESIGNS_MOST];
    bdforge_layers* layers;
    bdforge_text* text;
    size_t made = 0;
    require(count > 4, "four words");
    folder = words[2];
    read_model();
    expect(bdforge_device_open(words[1], &device), BDFORGE_OK, "");
    char* const names = strcpy(malloc(strlen(words[3]) + 1), words[3]);
    for (char* name = strtok(names, ","); name != NULL; name = strtok(NULL, ","))
        good(bdforge_design_load(device, name, designs + made++));
    good(bdforge_layers_create(designs, made, &model.of, &layers));
    for (size_t i = 0; i < made; ++i) bdforge_design_free(designs[i]);
    require(bdforge_layers_width(layers) == model.hidden, "width");
    expect(bdforge_text_create(layers, 1, &text), BDFORGE_ARGUMENT, "there is no layer yet");
    for (size_t layer = 0; layer < model.layers; ++layer) {
        add(layers, (int)layer);
        content((int)layer, "k_before", k[layer], sizeof k[layer]);
        content((int)layer, "v_before", v[layer], sizeof v[layer]);
    }
    content(-1, "x", x, sizeof x);
    const int ends = strstr(words[3], "_head") != NULL;
    if (ends) end(layers);
    good(bdforge_text_create(layers, (size_t)atoi(words[4]), &text));
    good(bdforge_text_read(text, 0, 0, 0, k[0], v[0]));
    for (int i = 5; i < count; ++i) {
        next(text, (size_t)atoi(words[i]), words[i][0] == '+',
             ends ? logits + (size_t)(i - 5) * bdforge_layers_vocabulary(layers) : NULL);
        last_logits(layers, text, i - 5, words[i][0] == '+');
    }
    if (ends) keep(-1, "logits", logits, (size_t)(count - 5) * bdforge_layers_vocabulary(layers));
    const size_t tokens = bdforge_text_tokens(text), size = model.of.key_heads * model.of.head_size;
    for (size_t layer = 0; layer < model.layers; ++layer) {
        good(bdforge_text_read(text, layer, 0, tokens, k[layer], v[layer]));
        keep((int)layer, "keys", k[layer], tokens * size), keep((int)layer, "values", v[layer], tokens * size);
    }
    expect(bdforge_text_read(text, 0, 1, tokens, k[0], v[0]), BDFORGE_ARGUMENT, "the text has");
    expect(bdforge_layers_add(layers, NULL, 0), BDFORGE_STATE, "add all of them before the first text");
    keep(-1, "y", y, tokens * model.hidden);
    bdforge_text_free(text);
    bdforge_layers_free(layers);
    bdforge_device_free(device);
    free(names);
    return 0;
}
