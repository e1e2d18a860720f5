/* core/base/heartbeat.c - see base/heartbeat.h. */
#include "core/base/heartbeat.h"

#include "core/base/file.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { TEXT_BYTES = 256 };

/* Numbers of one width, so that each text covers the one before. */
static const char format[] = "step %20" PRId64 " kept %20" PRId64 " of %20" PRId64 "\n"
                             "change %10d %11s %10d %12.6g step %12.6g before %12.6g\n";
static const char *const causes[] = {"other", "slow-worker", "slow-links"};

enum ghp_status ghp_heartbeat_open(const char *path, struct ghp_heartbeat *h)
{
    int fd;

    *h = (struct ghp_heartbeat){.fd = 0};
    GHP_TRY(ghp_file_open_output(path, false, &fd));
    /* lines are written over themselves, not one after another */
    (void)fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) & ~O_APPEND);
    h->fd = fd;
    return GHP_OK;
}

void ghp_heartbeat_write(const struct ghp_heartbeat *h)
{
    const struct ghp_beat_change *c = &h->change;
    char text[TEXT_BYTES];
    int n = snprintf(text, sizeof text, format, h->step, h->kept, h->of, c->number,
                     causes[c->cause], c->worker, c->times, c->now_s, c->before_s);
    ssize_t written = h->fd > 0 ? pwrite(h->fd, text, (size_t)n, 0) : 0;

    (void)written;
}

void ghp_heartbeat_close(struct ghp_heartbeat *h)
{
    if (h->fd > 0) close(h->fd);
    h->fd = 0;
}

/* Reads the change; zeroed if it is incomplete or there is none. */
static struct ghp_beat_change read_change(FILE *file)
{
    struct ghp_beat_change c = {0};
    char cause[12] = "";

    if (fscanf(file, " change %d %11s %d %lf step %lf before %lf", &c.number, cause, &c.worker,
               &c.times, &c.now_s, &c.before_s) != 6)
        return (struct ghp_beat_change){0};
    for (int i = 0; i < (int)(sizeof causes / sizeof causes[0]); i++)
        if (strcmp(cause, causes[i]) == 0) c.cause = (enum ghp_beat_cause)i;
    return c;
}

struct ghp_beat ghp_heartbeat_read(const char *path)
{
    struct ghp_beat beat = {0};
    struct stat about;
    FILE *file;
    int fd;

    if (ghp_file_open(path, &fd) != GHP_OK) return beat;
    file = fdopen(fd, "r");
    if (file == NULL) {
        close(fd);
        return beat;
    }
    if (fstat(fileno(file), &about) == 0)
        beat.changed_s = (double)about.st_mtim.tv_sec + 1e-9 * (double)about.st_mtim.tv_nsec;
    if (fscanf(file, "step %" SCNd64 " kept %" SCNd64 " of %" SCNd64, &beat.step, &beat.kept,
               &beat.of) == 3)
        beat.change = read_change(file);
    else
        beat.step = beat.kept = beat.of = 0;
    fclose(file);
    return beat;
}
