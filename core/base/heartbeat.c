/* core/base/heartbeat.c - see base/heartbeat.h. */
#include "core/base/heartbeat.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { LINE_BYTES = 64 };

/* Numbers of one width, so that each line covers the one before. */
static const char format[] = "step %20" PRId64 " kept %20" PRId64 "\n";

enum ghp_status ghp_heartbeat_open(const char *path, struct ghp_heartbeat *h)
{
    *h = (struct ghp_heartbeat){.fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666)};
    if (h->fd >= 0) return GHP_OK;
    h->fd = 0;
    return GHP_FAIL(GHP_ERR_IO, "cannot write '%s': %s; name a file that may be written", path,
                    strerror(errno));
}

void ghp_heartbeat_write(const struct ghp_heartbeat *h)
{
    char line[LINE_BYTES];
    int n = snprintf(line, sizeof(line), format, h->step, h->kept);
    ssize_t written = h->fd > 0 ? pwrite(h->fd, line, (size_t)n, 0) : 0;

    (void)written;
}

void ghp_heartbeat_close(struct ghp_heartbeat *h)
{
    if (h->fd > 0) close(h->fd);
    h->fd = 0;
}

struct ghp_beat ghp_heartbeat_read(const char *path)
{
    struct ghp_beat beat = {0};
    struct stat about;
    FILE *file = fopen(path, "re");

    if (file == NULL) return beat;
    if (fstat(fileno(file), &about) == 0)
        beat.changed_s = (double)about.st_mtim.tv_sec + 1e-9 * (double)about.st_mtim.tv_nsec;
    if (fscanf(file, "step %" SCNd64 " kept %" SCNd64, &beat.step, &beat.kept) != 2)
        beat.step = beat.kept = 0;
    fclose(file);
    return beat;
}
