/* A small GPT-2: PARAMETERS parameters, their gradients, and a step forward and backward. */
#ifndef MODEL_H
#define MODEL_H

enum { LAYERS = 2, WIDTH = 16, HEADS = 2, VOCABULARY = 128, BATCH = 4, PLACES = 16, ROWS = BATCH * PLACES };
enum { PARAMETERS = (VOCABULARY + PLACES + 2) * WIDTH + LAYERS * (12 * WIDTH + 13) * WIDTH };


typedef struct model {
    float* parameters;
    float* gradients;
} model;

/* Random weights of a fixed seed. 0 when there is no memory. */
int model_create(model* made);
void model_free(model* made);

/* Mean loss of ROWS tokens against those that follow them; gradients become those of the loss. Negative without memory. */
float model_step(model* trained, const int* tokens, const int* targets);

#endif
