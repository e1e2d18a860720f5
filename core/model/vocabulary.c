/* core/model/vocabulary.c - see model/vocabulary.h. */
#include "core/model/vocabulary.h"

#include "core/base/json_lines.h"
#include "core/model/model_private.h"

#include <stdlib.h>

enum ghp_status ghp_model_set_vocabulary(struct ghp_model *model, int64_t multiple)
{
    struct ghp_model changed;
    char *text = NULL;
    enum ghp_status status = GHP_OK;
    json_t *root;

    if (multiple == 0 || model->vocabulary_multiple > 0) return GHP_OK;
    root = ghp_json_value_of(model->text);
    if (root == NULL || ghp_vocabulary_put(root, multiple) != 0) status = GHP_NO_MEMORY();
    if (status == GHP_OK) status = ghp_json_compact(root, &text);
    if (status == GHP_OK) status = ghp_model_parse(text, model->name, &changed);
    free(text);
    json_decref(root);
    if (status != GHP_OK) return status;
    ghp_model_release(model);
    *model = changed;
    return GHP_OK;
}
