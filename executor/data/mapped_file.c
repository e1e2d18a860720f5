/* executor/data/mapped_file.c - see mapped_file.h. The handler of SIGBUS may call almost nothing, so what it says of a
 * file is written down when that is mapped. */
#include "executor/data/mapped_file.h"

#include "core/base/file.h"
#include "core/base/log.h"
#include "core/base/text.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { LINE_BYTES = 4096 + 256 };

static struct mapped {
    struct mapped *next;
    const char *memory;
    size_t bytes;
    size_t line_bytes;
    char line[LINE_BYTES];
} * all;

static void say(int number, siginfo_t *about, void *context)
{
    const char *at = about->si_addr;

    (void)context;
    for (const struct mapped *m = all; m != NULL; m = m->next)
        if (at >= m->memory && at < m->memory + m->bytes) {
            (void)!write(STDERR_FILENO, m->line, m->line_bytes);
            _exit(ghp_status_exit_code(GHP_ERR_IO));
        }
    signal(number, SIG_DFL); /* of other memory: it comes again, and ends the process */
}

static enum ghp_status note(const char *path, const void *memory, size_t bytes)
{
    struct sigaction action = {.sa_sigaction = say, .sa_flags = SA_SIGINFO};
    struct mapped *m = ghp_alloc(1, sizeof *m);

    if (m == NULL) return GHP_NO_MEMORY();
    m->memory = memory;
    m->bytes = bytes;
    snprintf(m->line, LINE_BYTES - 1,
             "%s: cannot read '%s' any more: it became shorter, or its disk failed; restore the "
             "file, and continue from the last checkpoint with --resume",
             ghp_log_tool(), path);
    ghp_text_printable(m->line);
    m->line_bytes = strlen(m->line);
    m->line[m->line_bytes++] = '\n';
    m->next = all;
    all = m;
    sigaction(SIGBUS, &action, NULL);
    return GHP_OK;
}

enum ghp_status ghp_mapped_file_open(const char *path, void **memory, size_t *bytes)
{
    enum ghp_status status;

    GHP_TRY(ghp_file_map(path, memory, bytes));
    if (*memory == NULL) return GHP_OK;
    status = note(path, *memory, *bytes);
    if (status != GHP_OK) munmap(*memory, *bytes);
    return status;
}

void ghp_mapped_file_close(void *memory, size_t bytes)
{
    struct mapped **m = &all, *gone;

    if (memory == NULL) return;
    while (*m != NULL && (*m)->memory != memory)
        m = &(*m)->next;
    gone = *m;
    if (gone != NULL) *m = gone->next;
    free(gone);
    munmap(memory, bytes);
}
