// A prompt's logits by libllama: words MODEL OUT.bin IDS..., float32 of tokens x vocabulary.

#include <llama.h>

#include <cstdio>
#include <cstdlib>
#include <vector>

int main(int count, char** words) {
    std::vector<llama_token> ids;
    for (int i = 3; i < count; ++i) ids.push_back(std::atoi(words[i]));
    ggml_backend_load_all();
    llama_model* const model = llama_model_load_from_file(words[1], llama_model_default_params());
    if (model == nullptr) return 2;
    llama_context_params parameters = llama_context_default_params();
    parameters.n_ctx = 64, parameters.n_batch = parameters.n_ubatch = static_cast<uint32_t>(ids.size());
    parameters.n_threads = parameters.n_threads_batch = 2;
    llama_context* const context = llama_init_from_model(model, parameters);
    llama_batch batch = llama_batch_init(static_cast<int>(ids.size()), 0, 1);
    for (std::size_t i = 0; i < ids.size(); ++i) {
        batch.token[i] = ids[i], batch.pos[i] = static_cast<llama_pos>(i), batch.n_seq_id[i] = 1;
        batch.seq_id[i][0] = 0, batch.logits[i] = 1;
    }
    batch.n_tokens = static_cast<int>(ids.size());
    if (llama_decode(context, batch) != 0) return 3;
    std::FILE* const out = std::fopen(words[2], "wb");
    const auto size = static_cast<std::size_t>(llama_vocab_n_tokens(llama_model_get_vocab(model)));
    std::fwrite(llama_get_logits(context), sizeof(float), size * ids.size(), out);
    std::fclose(out);
    llama_batch_free(batch);
    llama_free(context);
    llama_model_free(model);
    return 0;
}
