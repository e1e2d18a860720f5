/* executor/state/checkpoint_names.c - see checkpoint_private.h: what files of a folder are called, and keys in them. */
#include "executor/state/checkpoint_private.h"

#include <stdio.h>

const char ghp_checkpoint_optimizer_key[] = "optimizer", ghp_checkpoint_sync_key[] = "sync",
           ghp_checkpoint_workers_key[] = "workers", ghp_checkpoint_evaluation_key[] = "evaluation",
           ghp_checkpoint_ema_key[] = "ema", ghp_checkpoint_due[] = "due", ghp_checkpoint_loss_key[] = "test_loss";

void ghp_checkpoint_path(const char *folder, enum ghp_checkpoint_generation generation,
                         char path[GHP_CHECKPOINT_PATH_BYTES])
{
    static const char *const names[] = {"checkpoint.safetensors",
                                        "checkpoint.previous.safetensors"};

    snprintf(path, GHP_CHECKPOINT_PATH_BYTES, "%s/%s", folder, names[generation]);
}
