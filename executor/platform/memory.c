/* executor/platform/memory.c - see memory.h. VmHWM is the peak, VmRSS the present size; writing 5 to clear_refs
 * resets the peak. */
#include "executor/platform/memory.h"

#include "executor/platform/limits.h"

#include <fcntl.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { LARGE_BYTES = 1 << 20 };

/* A field of a file of lines "Field: N kB" in bytes, -1 if it is not there. */
static int64_t field_bytes(const char *path, const char *field)
{
    FILE *file = fopen(path, "r");
    char line[256];
    int64_t bytes = -1;
    size_t n = strlen(field);

    if (file == NULL) return -1;
    while (bytes < 0 && fgets(line, sizeof line, file) != NULL)
        if (strncmp(line, field, n) == 0 && line[n] == ':')
            bytes = 1024 * strtoll(line + n + 1, NULL, 10);
    fclose(file);
    return bytes;
}

static int64_t status_bytes(const char *field)
{
    return field_bytes("/proc/self/status", field);
}

/* The same of a resident size, without what of it is shared with other processes now; -1 if it is not there. */
static int64_t own_bytes(const char *field)
{
    int64_t all = status_bytes(field), shared = status_bytes("RssShmem");

    return all >= 0 && shared > 0 ? all - shared : all;
}

static bool reset_peak(void)
{
    int file = open("/proc/self/clear_refs", O_WRONLY | O_CLOEXEC);
    bool done;

    if (file < 0) return false;
    done = write(file, "5", 1) == 1;
    close(file);
    return done;
}

void ghp_memory_begin(struct ghp_memory *memory)
{
    mallopt(M_MMAP_THRESHOLD, LARGE_BYTES); /* large blocks go back to the system when freed */
    *memory = (struct ghp_memory){
        .base_bytes = own_bytes("VmRSS"), .counting = true, .exact = reset_peak()};
}

static void note_peak(struct ghp_memory *memory)
{
    int64_t now = own_bytes("VmHWM");

    if (memory->counting && now > memory->peak_bytes) memory->peak_bytes = now;
}

void ghp_memory_pause(struct ghp_memory *memory)
{
    note_peak(memory);
    memory->counting = false;
}

void ghp_memory_resume(struct ghp_memory *memory)
{
    memory->counting = true;
    if (memory->exact) memory->exact = reset_peak();
}

int64_t ghp_memory_over_base(struct ghp_memory *memory)
{
    note_peak(memory);
    return memory->base_bytes < 0 || memory->peak_bytes <= 0
               ? -1
               : memory->peak_bytes - memory->base_bytes;
}

int64_t ghp_memory_available(void)
{
    int64_t system = field_bytes("/proc/meminfo", "MemAvailable");
    struct ghp_limits limits;

    ghp_limits_read("", &limits);
    return limits.memory_left_bytes >= 0 && (system < 0 || limits.memory_left_bytes < system)
               ? limits.memory_left_bytes
               : system;
}
