/* executor/state/checkpoint_rates.c - see checkpoint_private.h: what learning rates by norms have learnt, as one text
 * of the metadata: the scaling's name, then each value in hexadecimal, to the bit. */
#include "executor/state/checkpoint_private.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char ghp_checkpoint_rates_key[] = "lr_scaling";

enum { VALUE_BYTES = 32 };

/* Values that the scaling keeps from step to step. */
static int values_of(const struct ghp_worker *worker)
{
    const struct ghp_tensor_rates *rates = ghp_worker_rates(worker);

    return rates != NULL && rates->rule->batches ? GHP_TENSOR_RATES_VALUES * rates->tensors : 0;
}

enum ghp_status ghp_checkpoint_rates_text(const struct ghp_worker *worker, char **text)
{
    const struct ghp_tensor_rates *rates = ghp_worker_rates(worker);
    int n = values_of(worker);
    size_t room = ((size_t)n + 1) * VALUE_BYTES, used;

    *text = NULL;
    if (rates == NULL) return GHP_OK;
    *text = ghp_alloc(room, 1);
    if (*text == NULL) return GHP_NO_MEMORY();
    used = (size_t)snprintf(*text, room, "%s", ghp_worker_program(worker)->method.scaling->name);
    for (int i = 0; i < n; i++)
        used += (size_t)snprintf(*text + used, room - used, " %a", rates->values[i]);
    return GHP_OK;
}

static enum ghp_status fail_values(const char *path)
{
    return GHP_FAIL(
        GHP_ERR_FORMAT,
        "'%s': '%s' in its metadata does not have the numbers of this model's tensors; use a "
        "checkpoint that ghp-run wrote",
        path, ghp_checkpoint_rates_key);
}

enum ghp_status ghp_checkpoint_read_rates(const char *path, const struct ghp_safetensors *file,
                                          struct ghp_worker *worker)
{
    const char *at = ghp_safetensors_metadata(file, ghp_checkpoint_rates_key);
    const struct ghp_tensor_rates *rates = ghp_worker_rates(worker);
    const char *mine = rates != NULL ? ghp_worker_program(worker)->method.scaling->name : "none";
    int length = at != NULL ? (int)strcspn(at, " ") : 4;

    if (at == NULL) at = "none";
    if ((int)strlen(mine) != length || strncmp(mine, at, (size_t)length) != 0)
        return GHP_FAIL(GHP_ERR_INPUT,
                        "'%s' is of a training by --lr-scaling %.*s, and the plan is by %s; plan "
                        "with --lr-scaling %.*s, or start from its weights with --init",
                        path, length, at, mine, length, at);
    at += length;
    for (int i = 0; i < values_of(worker); i++) {
        char *end = NULL;

        rates->values[i] = strtod(at, &end);
        if (end == at || !isfinite(rates->values[i])) return fail_values(path);
        at = end;
    }
    return *at == '\0' ? GHP_OK : fail_values(path);
}
