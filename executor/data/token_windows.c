/* executor/data/token_windows.c - sources of token ids: windows of files, in their order. Files after "val:" test; if
 * there are none, the last part of the windows may be cut off to test. "type=uint32" says what bare files hold. */
#include "core/base/text.h"
#include "executor/data/data_private.h"
#include "executor/data/tokens.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TOKENS_BYTES = GHP_DATA_SET_COUNT * sizeof(struct ghp_tokens *) };

static const char test_mark[] = "val:", type_mark[] = "type=";

const char *ghp_token_list_file(const char *item)
{
    if (ghp_text_begins(item, type_mark)) return NULL;
    return ghp_text_begins(item, test_mark) ? item + strlen(test_mark) : item;
}

/* The type that a list says, as memory of the caller's; "" if it says none. */
static char *take_type(const char *files)
{
    for (const char *at = files; at != NULL; at = strchr(at, ',')) {
        if (*at == ',') at++;
        if (ghp_text_begins(at, type_mark))
            return strndup(at + strlen(type_mark), strcspn(at + strlen(type_mark), ","));
    }
    return strdup("");
}

/* The names of a list that are marked, or those that are not, without their marks; "" if there are none. */
static char *take_names(const char *files, bool marked)
{
    size_t room = strlen(files) + 1, used = 0;
    char *names = ghp_alloc(room, 1);

    for (const char *at = files; names != NULL && at != NULL;) {
        const char *comma = strchr(at, ',');
        const char *file = ghp_token_list_file(at);

        if (file != NULL && (file != at) == marked)
            used += (size_t)snprintf(names + used, room - used, "%s%.*s", used > 0 ? "," : "",
                                     (int)(comma != NULL ? comma - file : (ptrdiff_t)strlen(file)),
                                     file);
        at = comma != NULL ? comma + 1 : NULL;
    }
    return names;
}

static enum ghp_status open_set(const struct ghp_data_request *request, const char *files,
                                struct ghp_data *data, enum ghp_data_set set)
{
    struct ghp_tokens_request tokens = {
        .format = {.bytes = data->ops == &ghp_data_bytes, .vocabulary = request->shape.vocabulary},
        .positions = request->shape.h};
    enum ghp_status status = GHP_OK;
    char *names = take_names(files, set == GHP_DATA_TEST), *type = take_type(files);

    tokens.files = names;
    if (type != NULL && type[0] != '\0') tokens.format.type = type;
    if (names == NULL || type == NULL)
        status = GHP_NO_MEMORY();
    else if (names[0] != '\0')
        status = ghp_tokens_open(&tokens, &((struct ghp_tokens **)data->own)[set]);
    else if (set == GHP_DATA_TRAIN)
        status = GHP_FAIL(GHP_ERR_USAGE, "'%s' names no file that trains; name one without '%s'",
                          request->spec, test_mark);
    free(type);
    free(names);
    return status;
}

/* Windows that train, and those that test. */
static enum ghp_status divide(const struct ghp_data_request *request, struct ghp_data *data)
{
    struct ghp_tokens *const *tokens = data->own;
    int64_t n = ghp_tokens_windows(tokens[GHP_DATA_TRAIN]);

    data->count[GHP_DATA_TRAIN] = n;
    if (tokens[GHP_DATA_TEST] != NULL) {
        if (request->split > 0)
            return GHP_FAIL(GHP_ERR_USAGE,
                            "'%s' has files that test, so there is nothing to cut; leave "
                            "--train-fraction out",
                            request->spec);
        data->source[GHP_DATA_TEST] = GHP_DATA_TEST;
        data->count[GHP_DATA_TEST] = ghp_tokens_windows(tokens[GHP_DATA_TEST]);
        return GHP_OK;
    }
    if (request->split > 0)
        data->count[GHP_DATA_TRAIN] = (int64_t)floor((double)n * request->split + 1e-9);
    data->first[GHP_DATA_TEST] = data->count[GHP_DATA_TRAIN];
    data->count[GHP_DATA_TEST] = n - data->count[GHP_DATA_TRAIN];
    return GHP_OK;
}

static enum ghp_status windows_open(const struct ghp_data_request *request, const char *files,
                                    struct ghp_data *data)
{
    GHP_TRY(open_set(request, files, data, GHP_DATA_TRAIN));
    GHP_TRY(open_set(request, files, data, GHP_DATA_TEST));
    data->shape = request->shape;
    return divide(request, data);
}

static void windows_close(void *own)
{
    for (int set = 0; set < GHP_DATA_SET_COUNT; set++)
        ghp_tokens_close(((struct ghp_tokens **)own)[set]);
}

static const struct ghp_tokens *tokens_of(const struct ghp_data *data, enum ghp_data_set set)
{
    return ((struct ghp_tokens **)data->own)[data->source[set]];
}

static enum ghp_status windows_ids(const struct ghp_data *data, int64_t sample,
                                   const struct ghp_batch *batch, void *image)
{
    ghp_tokens_window(tokens_of(data, batch->set), data->first[batch->set] + sample, image, NULL);
    return GHP_OK;
}

static void windows_labels(const struct ghp_data *data, enum ghp_data_set set, int64_t sample,
                           int32_t *labels)
{
    ghp_tokens_window(tokens_of(data, set), data->first[set] + sample, NULL, labels);
}

const struct ghp_data_ops ghp_data_tokens = {.name = "tokens",
                                             .argument = "FILE",
                                             .has_tokens = true,
                                             .own_bytes = TOKENS_BYTES,
                                             .open = windows_open,
                                             .close = windows_close,
                                             .image = windows_ids,
                                             .labels = windows_labels};

const struct ghp_data_ops ghp_data_bytes = {.name = "bytes",
                                            .argument = "FILE",
                                            .has_tokens = true,
                                            .own_bytes = TOKENS_BYTES,
                                            .open = windows_open,
                                            .close = windows_close,
                                            .image = windows_ids,
                                            .labels = windows_labels};
