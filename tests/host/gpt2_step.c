/* gpt2_step: reads parameters (float), tokens and targets (int) of examples/gpt2 from stdin, and writes the loss and the
 * gradients to stdout. */
#include <stdio.h>

#include "model.h"

int main(void) {
    static int tokens[ROWS], targets[ROWS];
    model made;
    if (!model_create(&made)) return 2;
    if (fread(made.parameters, sizeof(float), PARAMETERS, stdin) != PARAMETERS) return 3;
    if (fread(tokens, sizeof(int), ROWS, stdin) != ROWS || fread(targets, sizeof(int), ROWS, stdin) != ROWS) return 3;
    const float loss = model_step(&made, tokens, targets);
    const size_t written = fwrite(&loss, sizeof loss, 1, stdout) + fwrite(made.gradients, sizeof(float), PARAMETERS, stdout);
    model_free(&made);
    return written == PARAMETERS + 1 ? 0 : 4;
}
