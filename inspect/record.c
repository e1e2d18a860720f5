/* inspect/record.c - see record.h. */
#include "inspect/record.h"

#include "core/base/embed.h"
#include "core/program/program.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_WORKERS = 1 << 20 };

#define MAX_SECONDS 1e9

bool ghp_record_is_whole(const struct ghp_json *doc)
{
    json_t *first = json_array_get(json_object_get(doc->root, "instructions"), 0);

    return json_object_get(doc->root, "model_hash") != NULL &&
           json_object_get(first, "measured_itself_s") != NULL;
}

void ghp_record_release(struct ghp_record *record)
{
    if (record == NULL) return;
    free(record->layers);
    free(record->instrs);
    ghp_json_release(&record->doc);
    *record = (struct ghp_record){0};
}

/* A text of the document; null is NULL if that may be. */
static enum ghp_status read_text(const struct ghp_node *at, const char *key, bool may_be_null,
                                 const char **text)
{
    struct ghp_node node;

    GHP_TRY(ghp_json_get(at, key, &node));
    *text = json_string_value(node.value);
    if (*text == NULL && !(may_be_null && json_is_null(node.value)))
        return ghp_json_fail(&node, GHP_ERR_FORMAT,
                             "this is not text; leave the file as ghp-run --run wrote it");
    return GHP_OK;
}

/* Seconds; null is NAN. */
static enum ghp_status read_seconds(const struct ghp_node *at, const char *key, double *seconds)
{
    struct ghp_node node;

    GHP_TRY(ghp_json_get(at, key, &node));
    *seconds = NAN;
    if (json_is_null(node.value)) return GHP_OK;
    return ghp_json_real(at, key, -MAX_SECONDS, MAX_SECONDS, seconds);
}

/* Measured seconds are never null. */
static enum ghp_status read_measured(const struct ghp_node *at, const char *key, double *seconds)
{
    return ghp_json_real(at, key, -MAX_SECONDS, MAX_SECONDS, seconds);
}

static enum ghp_status read_head(const struct ghp_node *root, struct ghp_record *r)
{
    int64_t workers = 0;
    int precision = 0;

    GHP_TRY(read_text(root, "model", false, &r->model));
    GHP_TRY(read_text(root, "strategy", false, &r->strategy));
    GHP_TRY(read_text(root, "backend", false, &r->backend));
    GHP_TRY(read_text(root, "numerics", false, &r->numerics));
    GHP_TRY(read_text(root, "injected_fault", false, &r->fault));
    GHP_TRY(ghp_embed_hash(root, "model_hash", &r->model_hash));
    GHP_TRY(ghp_json_int(root, "workers", 1, MAX_WORKERS, &workers));
    r->problem.workers = (int)workers;
    GHP_TRY(ghp_json_int(root, "global_batch", 1, INT64_MAX, &r->problem.global_batch));
    GHP_TRY(ghp_json_int(root, "bucket_cap_bytes", 0, INT64_MAX, &r->bucket_bytes));
    GHP_TRY(ghp_json_choice(root, "precision", ghp_precision_names, &precision));
    r->precision = ghp_precision_of(precision);
    GHP_TRY(read_seconds(root, "predicted_step_s", &r->predicted_step_s));
    return read_measured(root, "measured_step_s", &r->measured_step_s);
}

static enum ghp_status read_phases(const struct ghp_node *root, struct ghp_record *r)
{
    struct ghp_node array, item;
    const char *phase;
    size_t n;

    GHP_TRY(ghp_json_array(root, "phases", &array, &n));
    for (size_t i = 0; i < n; i++) {
        bool exposed, between;

        GHP_TRY(ghp_json_item(&array, i, &item));
        GHP_TRY(read_text(&item, "phase", false, &phase));
        exposed = strcmp(phase, "exposed") == 0;
        between = strcmp(phase, "launch overhead") == 0;
        if (!exposed && !between) continue;
        GHP_TRY(read_seconds(&item, "predicted_s",
                             exposed ? &r->predicted_exposed_s : &r->predicted_launch_overhead_s));
        GHP_TRY(read_measured(&item, "measured_s",
                              exposed ? &r->measured_exposed_s : &r->measured_launch_overhead_s));
    }
    return GHP_OK;
}

static enum ghp_status read_layers(const struct ghp_node *root, struct ghp_record *r)
{
    struct ghp_node array, item;
    const char *split;
    size_t n;

    GHP_TRY(ghp_json_array(root, "layers", &array, &n));
    r->layers = ghp_alloc(n, sizeof *r->layers);
    if (r->layers == NULL) return GHP_NO_MEMORY();
    r->n_layers = (int)n;
    for (size_t i = 0; i < n; i++) {
        GHP_TRY(ghp_json_item(&array, i, &item));
        GHP_TRY(read_text(&item, "layer", false, &r->layers[i].name));
        GHP_TRY(read_text(&item, "split", false, &split));
        if (ghp_split_parse(split, &r->layers[i].split) != GHP_OK)
            return ghp_json_fail(&item, GHP_ERR_FORMAT, "%s", ghp_status_message());
        GHP_TRY(read_seconds(&item, "predicted_s", &r->layers[i].predicted_s));
        GHP_TRY(read_measured(&item, "measured_s", &r->layers[i].measured_s));
    }
    return GHP_OK;
}

static enum ghp_status read_instr(const struct ghp_node *item, struct ghp_record_instr *instr)
{
    int stream = 0;

    GHP_TRY(read_text(item, "instruction", false, &instr->name));
    GHP_TRY(read_text(item, "layer", true, &instr->layer));
    GHP_TRY(read_text(item, "key", true, &instr->key));
    GHP_TRY(read_text(item, "collective", true, &instr->collective));
    GHP_TRY(ghp_json_choice(item, "stream", ghp_stream_names, &stream));
    instr->concurrent = stream != GHP_STREAM_COMPUTE;
    GHP_TRY(ghp_json_int(item, "ranks", 1, MAX_WORKERS, &instr->ranks));
    GHP_TRY(ghp_json_int(item, "bytes", 0, INT64_MAX, &instr->bytes));
    GHP_TRY(ghp_json_int(item, "copy_bytes", 0, INT64_MAX, &instr->copy_bytes));
    GHP_TRY(read_seconds(item, "predicted_s", &instr->predicted_s));
    GHP_TRY(read_measured(item, "measured_start_s", &instr->measured_start_s));
    GHP_TRY(read_measured(item, "measured_s", &instr->measured_s));
    GHP_TRY(read_measured(item, "measured_wait_s", &instr->measured_wait_s));
    GHP_TRY(read_measured(item, "measured_itself_s", &instr->measured_own_s));
    return read_measured(item, "measured_straggler_wait_s", &instr->measured_straggler_wait_s);
}

static enum ghp_status read_instrs(const struct ghp_node *root, struct ghp_record *r)
{
    struct ghp_node array, item;
    size_t n;

    GHP_TRY(ghp_json_array(root, "instructions", &array, &n));
    r->instrs = ghp_alloc(n, sizeof *r->instrs);
    if (r->instrs == NULL) return GHP_NO_MEMORY();
    r->n_instrs = (int)n;
    for (size_t i = 0; i < n; i++) {
        GHP_TRY(ghp_json_item(&array, i, &item));
        GHP_TRY(read_instr(&item, &r->instrs[i]));
    }
    return GHP_OK;
}

static enum ghp_status read_all(const char *path, struct ghp_record *r)
{
    struct ghp_node root;

    GHP_TRY(ghp_json_load(path, "ghp.run/2", &r->doc));
    root = ghp_json_root(&r->doc);
    if (!ghp_record_is_whole(&r->doc))
        return GHP_FAIL(GHP_ERR_INPUT,
                        "run '%s' does not say what each of its instructions is: it was written by "
                        "an older ghp-run; train by that plan again with ghp-run --run",
                        path);
    GHP_TRY(read_head(&root, r));
    GHP_TRY(read_phases(&root, r));
    GHP_TRY(read_layers(&root, r));
    GHP_TRY(read_instrs(&root, r));
    if (!(r->measured_step_s > 0))
        return GHP_FAIL(GHP_ERR_INPUT,
                        "run '%s' measured no step; train more steps with ghp-run --steps", path);
    return ghp_embed_hash_of(json_incref(r->doc.root), &r->hash);
}

enum ghp_status ghp_record_load(const char *path, struct ghp_record *record)
{
    enum ghp_status status;

    *record = (struct ghp_record){.path = path};
    status = read_all(path, record);
    if (status != GHP_OK) ghp_record_release(record);
    return status;
}
