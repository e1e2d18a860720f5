/* executor/cli/hints.c - the options of other tools that users try at ghp-run, and what they do instead. */
#include "executor/cli/hints.h"

#define PLANNED "a plan decides it: give it to ghp-plan, and run the new plan"

const struct ghp_opts_hint ghp_run_hints[] = {
    {"batch", PLANNED},
    {"batch-size", PLANNED},
    {"workers", PLANNED},
    {"micro-batches", PLANNED},
    {"max-micro-batches", PLANNED},
    {"stages", PLANNED},
    {"pipeline", PLANNED},
    {"recompute", PLANNED},
    {"strategy", PLANNED},
    {"sync", PLANNED},
    {"servers", PLANNED},
    {"memory", PLANNED},
    {"lr-scaling", PLANNED},
    {"groups", PLANNED},
    {"force", PLANNED},
    {"weights", "first weights are --init's: FILE.safetensors, FILE.onnx or a FOLDER"},
    {"learning-rate", "did you mean '--lr'?"},
    {NULL, NULL}};
