/* executor/train/metrics.c - see metrics.h. */
#include "executor/train/metrics.h"

#include "core/base/file.h"
#include "core/base/json_lines.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct ghp_metrics {
    FILE *file;
    char *path;
};

static enum ghp_status fail_write(const struct ghp_metrics *m)
{
    return ghp_file_fail_write(m->path, errno);
}

enum ghp_status ghp_metrics_refuse(const char *path, bool resumable)
{
    struct stat about;

    if (stat(path, &about) != 0 || !S_ISREG(about.st_mode) || about.st_size == 0) return GHP_OK;
    return GHP_FAIL(GHP_ERR_USAGE,
                    "'%s' holds the metrics of a training; %sreplace them with --overwrite, or "
                    "name another file with --metrics",
                    path, resumable ? "continue that training with --resume, " : "");
}

enum ghp_status ghp_metrics_open(const char *path, bool append, struct ghp_metrics **metrics)
{
    enum ghp_status status = GHP_OK;
    struct ghp_metrics *m = ghp_alloc(1, sizeof *m);
    int fd;

    *metrics = NULL;
    if (m == NULL) return GHP_NO_MEMORY();
    m->path = strdup(path);
    if (m->path == NULL) GHP_TRY_GOTO(status, GHP_NO_MEMORY(), fail);
    GHP_TRY_GOTO(status, ghp_file_open_output(path, append, &fd), fail);
    m->file = fdopen(fd, "a");
    if (m->file == NULL) {
        close(fd);
        GHP_TRY_GOTO(status, GHP_NO_MEMORY(), fail);
    }
    *metrics = m;
    return GHP_OK;
fail:
    ghp_metrics_close(m);
    return status;
}

/* What a line says of steps up to `from.step`: kept; of later ones: not. */
static enum ghp_status judge_line(const struct ghp_metrics *m, const char *text,
                                  struct ghp_metrics_from from, bool *kept)
{
    json_t *line = ghp_json_value_of(text), *at = json_object_get(line, "step");
    bool is_step = json_object_get(line, "loss") != NULL, good = json_is_integer(at);

    /* a step's line counts it from 0, an evaluation's says how many were done */
    *kept = good &&
            json_integer_value(at) <= (is_step || from.owes_evaluation ? from.step - 1 : from.step);
    json_decref(line);
    if (good) return GHP_OK;
    return GHP_FAIL(GHP_ERR_FORMAT,
                    "'%s' is not a metrics file, so it cannot be continued; name another "
                    "file",
                    m->path);
}

/* Finds where the lines that are kept end. */
static enum ghp_status find_end(const struct ghp_metrics *m, FILE *file,
                                struct ghp_metrics_from from, off_t *end)
{
    enum ghp_status status = GHP_OK;
    char *line = NULL;
    size_t room = 0;
    ssize_t n;
    bool kept = true;

    while (kept && status == GHP_OK && (n = getline(&line, &room, file)) > 0) {
        if (line[n - 1] != '\n') break; /* cut by a kill */
        status = judge_line(m, line, from, &kept);
        if (kept) *end += n;
    }
    free(line);
    return status;
}

enum ghp_status ghp_metrics_resume(struct ghp_metrics *m, struct ghp_metrics_from from)
{
    enum ghp_status status;
    FILE *file;
    off_t end = 0;
    struct stat about;
    int fd;

    if (fstat(fileno(m->file), &about) != 0) return fail_write(m);
    if (!S_ISREG(about.st_mode)) return GHP_OK;
    GHP_TRY(ghp_file_open(m->path, &fd));
    file = fdopen(fd, "r");
    if (file == NULL) {
        close(fd);
        return GHP_NO_MEMORY();
    }
    status = find_end(m, file, from, &end);
    fclose(file);
    GHP_TRY(status);
    return ftruncate(fileno(m->file), end) == 0 ? GHP_OK : fail_write(m);
}

void ghp_metrics_close(struct ghp_metrics *m)
{
    if (m == NULL) return;
    if (m->file != NULL) fclose(m->file);
    free(m->path);
    free(m);
}

static enum ghp_status write_line(struct ghp_metrics *m, json_t *line)
{
    char *text = NULL;
    enum ghp_status status = line == NULL ? GHP_NO_MEMORY() : ghp_json_compact(line, &text);
    bool written;

    json_decref(line);
    GHP_TRY(status);
    written = fprintf(m->file, "%s\n", text) > 0 && fflush(m->file) == 0;
    free(text);
    return written ? GHP_OK : fail_write(m);
}

/* JSON has no NaN and no infinity. */
static json_t *real(double value)
{
    return isfinite(value) ? json_real(value) : json_null();
}

/* The line with one more number, if there is one; NULL without memory. */
static json_t *with(json_t *line, const char *key, double value)
{
    if (value <= 0 || json_object_set_new(line, key, real(value)) == 0) return line;
    json_decref(line);
    return NULL;
}

enum ghp_status ghp_metrics_step(struct ghp_metrics *m, const struct ghp_metrics_line *s)
{
    const char *top1 = s->of_numbers ? "absolute_error" : "top1";
    json_t *line = json_pack("{s:I, s:I, s:o, s:o, s:f, s:f}", "step", (json_int_t)s->step, "epoch",
                             (json_int_t)s->epoch, "loss", real(s->loss), top1, real(s->top1),
                             "images_per_s", s->images_per_s, "learning_rate", s->learning_rate);

    line = with(line, "gradient_norm", s->gradient_norm);
    return write_line(m, with(line, "tokens_per_s", s->tokens_per_s));
}

enum ghp_status ghp_metrics_evaluation(struct ghp_metrics *m, int64_t step, int64_t epoch,
                                       const struct ghp_evaluation *e)
{
    json_t *line =
        json_pack("{s:I, s:I, s:o, s:o, s:I}", "step", (json_int_t)step, "epoch", (json_int_t)epoch,
                  "test_loss", real(e->loss), e->of_numbers ? "test_absolute_error" : "test_top1",
                  real(e->of_numbers ? e->absolute_error : e->accuracy), "test_samples",
                  (json_int_t)e->samples);

    line = with(line, "test_perplexity", e->perplexity);
    if (line != NULL && !ghp_hits_put(&e->hits, "test_", line)) {
        json_decref(line);
        line = NULL;
    }
    return write_line(m, line);
}
