/* executor/state/checkpoint_names.c - see checkpoint_private.h: keys in a checkpoint's metadata. */
#include "executor/state/checkpoint_private.h"

const char ghp_checkpoint_optimizer_key[] = "optimizer", ghp_checkpoint_sync_key[] = "sync",
           ghp_checkpoint_workers_key[] = "workers", ghp_checkpoint_evaluation_key[] = "evaluation",
           ghp_checkpoint_ema_key[] = "ema", ghp_checkpoint_due[] = "due",
           ghp_checkpoint_loss_key[] = "test_loss";
