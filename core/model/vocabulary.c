/* core/model/vocabulary.c - see model/vocabulary.h. */
#include "core/model/vocabulary.h"

#include "core/model/model_private.h"

enum ghp_status ghp_model_set_vocabulary(struct ghp_model *model, int64_t multiple)
{
    enum ghp_status status;
    json_t *root;

    if (multiple == 0 || model->vocabulary_multiple > 0) return GHP_OK;
    root = ghp_json_value_of(model->text);
    status = root == NULL || ghp_vocabulary_put(root, multiple) != 0
                 ? GHP_NO_MEMORY()
                 : ghp_model_replace_by(model, root);
    json_decref(root);
    return status;
}
