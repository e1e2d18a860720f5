/* executor/train/event_file.c - see train/event_file.h. */
#include "executor/train/event_file.h"

#include "core/base/file.h"
#include "executor/train/crc32c.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum {
    PATH_BYTES = 4096,
    EVENT_BYTES = 1024, /* an event has at most 7 scalars */
    HOST_BYTES = 128,
    /* protobuf's wire types */
    VARINT = 0,
    FIXED64 = 1,
    BYTES = 2,
    FIXED32 = 5,
    /* fields of an event */
    WALL_TIME = 1,
    STEP = 2,
    VERSION = 3,
    SUMMARY = 5,
    SESSION = 7
};

struct ghp_event_file {
    FILE *file;
    char path[PATH_BYTES];
};

/* ---- the wire format ---- */

struct message {
    unsigned char bytes[EVENT_BYTES];
    size_t n;
};

static void put_bytes(struct message *m, const void *bytes, size_t n)
{
    GHP_ASSERT(m->n + n <= sizeof m->bytes);
    memcpy(m->bytes + m->n, bytes, n);
    m->n += n;
}

/* Little-endian, n bytes. */
static void put_number(struct message *m, uint64_t value, int n)
{
    for (int i = 0; i < n; i++) {
        unsigned char byte = (unsigned char)(value >> 8 * i & 0xff);

        put_bytes(m, &byte, 1);
    }
}

static void put_varint(struct message *m, uint64_t value)
{
    for (; value > 127; value >>= 7)
        put_number(m, (value & 127) | 128, 1);
    put_number(m, value, 1);
}

static void put_field(struct message *m, int field, int wire_type)
{
    put_varint(m, (uint64_t)(field << 3 | wire_type));
}

static void put_field_bytes(struct message *m, int field, const void *bytes, size_t n)
{
    put_field(m, field, BYTES);
    put_varint(m, n);
    put_bytes(m, bytes, n);
}

static void put_double(struct message *m, int field, double value)
{
    uint64_t bits;

    memcpy(&bits, &value, sizeof bits);
    put_field(m, field, FIXED64);
    put_number(m, bits, (int)sizeof bits);
}

static void put_float(struct message *m, int field, float value)
{
    uint32_t bits;

    memcpy(&bits, &value, sizeof bits);
    put_field(m, field, FIXED32);
    put_number(m, bits, (int)sizeof bits);
}

/* ---- events ---- */

static void begin_event(struct message *event, int64_t step)
{
    struct timespec now = {0};

    event->n = 0;
    clock_gettime(CLOCK_REALTIME, &now);
    put_double(event, WALL_TIME, (double)now.tv_sec + 1e-9 * (double)now.tv_nsec);
    put_field(event, STEP, VARINT);
    put_varint(event, (uint64_t)step);
}

/* One more scalar of a summary. */
static void put_scalar(struct message *summary, const char *tag, double value)
{
    struct message scalar = {.n = 0};

    put_field_bytes(&scalar, 1, tag, strlen(tag));
    put_float(&scalar, 2, (float)value);
    put_field_bytes(summary, 1, scalar.bytes, scalar.n);
}

static enum ghp_status write_event(struct ghp_event_file *file, const struct message *event)
{
    struct message length = {.n = 0}, check = {.n = 0};

    put_number(&length, event->n, 8);
    put_number(&length, ghp_crc32c_masked(length.bytes, 8), 4);
    put_number(&check, ghp_crc32c_masked(event->bytes, event->n), 4);
    if (fwrite(length.bytes, 1, length.n, file->file) == length.n &&
        fwrite(event->bytes, 1, event->n, file->file) == event->n &&
        fwrite(check.bytes, 1, check.n, file->file) == check.n && fflush(file->file) == 0)
        return GHP_OK;
    return ghp_file_fail_write(file->path, errno);
}

static enum ghp_status write_summary(struct ghp_event_file *file, int64_t step,
                                     const struct message *summary)
{
    struct message event;

    begin_event(&event, step);
    put_field_bytes(&event, SUMMARY, summary->bytes, summary->n);
    return write_event(file, &event);
}

/* ---- the file ---- */

/* Creates a file whose name sorts by time, is not another run's, and has what TensorBoard looks for. */
static enum ghp_status create(const char *folder, struct ghp_event_file *file)
{
    char host[HOST_BYTES] = "";
    int fd = -1, n = 0;

    if (gethostname(host, sizeof host - 1) != 0) host[0] = '\0';
    for (int turn = 0; fd < 0; turn++) {
        n = snprintf(file->path, sizeof file->path, "%s/events.out.tfevents.%010lld.%s.%ld.%d",
                     folder, (long long)time(NULL), host, (long)getpid(), turn);
        if (n < 0 || (size_t)n >= sizeof file->path)
            return GHP_FAIL(GHP_ERR_IO, "the name of a folder is too long; shorten '%.64s...'",
                            folder);
        fd = open(file->path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (fd < 0 && errno != EEXIST) return ghp_file_fail_write(file->path, errno);
    }
    file->file = fdopen(fd, "w");
    if (file->file != NULL) return GHP_OK;
    close(fd);
    return GHP_NO_MEMORY();
}

enum ghp_status ghp_event_file_open(const char *folder, struct ghp_event_file **file)
{
    static const char version[] = "brain.Event:2";
    struct ghp_event_file *f = ghp_alloc(1, sizeof *f);
    struct message event;
    enum ghp_status status;

    *file = NULL;
    if (f == NULL) return GHP_NO_MEMORY();
    mkdir(folder, 0777); /* what is wrong with it, the file in it says */
    status = create(folder, f);
    if (status == GHP_OK) {
        begin_event(&event, 0);
        put_field_bytes(&event, VERSION, version, sizeof version - 1);
        status = write_event(f, &event);
    }
    if (status == GHP_OK)
        *file = f;
    else
        ghp_event_file_close(f);
    return status;
}

enum ghp_status ghp_event_file_begin(struct ghp_event_file *file, int64_t step)
{
    static const unsigned char start[] = {1 << 3 | VARINT, 1}; /* a session's status: START */
    struct message event;

    if (step == 0) return GHP_OK;
    begin_event(&event, step);
    put_field_bytes(&event, SESSION, start, sizeof start);
    return write_event(file, &event);
}

enum ghp_status ghp_event_file_step(struct ghp_event_file *file, const struct ghp_metrics_line *s)
{
    struct message summary = {.n = 0};

    put_scalar(&summary, "train/loss", s->loss);
    put_scalar(&summary, s->of_numbers ? "train/absolute_error" : "train/top1", s->top1);
    put_scalar(&summary, "train/samples_per_s", s->images_per_s);
    put_scalar(&summary, "train/learning_rate", s->learning_rate);
    if (s->gradient_norm > 0) put_scalar(&summary, "train/gradient_norm", s->gradient_norm);
    if (s->tokens_per_s > 0) put_scalar(&summary, "train/tokens_per_s", s->tokens_per_s);
    return write_summary(file, s->step, &summary);
}

static enum ghp_status write_output(struct ghp_event_file *file, int64_t step, int number,
                                    const struct ghp_output_result *of)
{
    struct message summary = {.n = 0};
    char name[48];

    snprintf(name, sizeof name, "test/output%d_loss", number);
    put_scalar(&summary, name, of->loss);
    snprintf(name, sizeof name, "test/output%d_%s", number,
             of->of_numbers ? "absolute_error" : "top1");
    put_scalar(&summary, name, of->second);
    return write_summary(file, step, &summary);
}

enum ghp_status ghp_event_file_evaluation(struct ghp_event_file *file, int64_t step,
                                          const struct ghp_evaluation *e)
{
    struct message summary = {.n = 0};

    put_scalar(&summary, "test/loss", e->loss);
    put_scalar(&summary, e->of_numbers ? "test/absolute_error" : "test/top1",
               e->of_numbers ? e->absolute_error : e->accuracy);
    if (e->hits.all.labels > 0)
        put_scalar(&summary, "test/top5", ghp_hits_fraction(e->hits.all.top5, e->hits.all.labels));
    if (e->perplexity > 0) put_scalar(&summary, "test/perplexity", e->perplexity);
    for (int i = 0; i < e->hits.n_outputs; i++)
        GHP_TRY(write_output(file, step - 1, i + 1, &e->hits.outputs[i]));
    return write_summary(file, step - 1, &summary);
}

const char *ghp_event_file_path(const struct ghp_event_file *file)
{
    return file->path;
}

void ghp_event_file_close(struct ghp_event_file *file)
{
    if (file == NULL) return;
    if (file->file != NULL) fclose(file->file);
    free(file);
}
