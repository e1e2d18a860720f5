/* executor/launcher/relay.c - see executor/launcher/relay.h. */
#include "executor/launcher/relay.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum ghp_status ghp_relay_open(int ends[2])
{
    if (pipe(ends) == 0 && fcntl(ends[0], F_SETFD, FD_CLOEXEC) == 0 &&
        fcntl(ends[1], F_SETFD, FD_CLOEXEC) == 0)
        return GHP_OK;
    return GHP_FAIL(GHP_ERR_INTERNAL, "cannot make a pipe: %s; raise the limit of open files",
                    strerror(errno));
}

bool ghp_relay_pass(int pipe)
{
    char bytes[4096];
    ssize_t n = read(pipe, bytes, sizeof(bytes));

    if (n <= 0) return n < 0 && (errno == EINTR || errno == EAGAIN);
    fwrite(bytes, 1, (size_t)n, stdout);
    fflush(stdout);
    return true;
}
