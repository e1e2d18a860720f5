/* executor/platform/process.c - see process.h. */
#include "executor/platform/process.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* False if it has gone. The command's name, in parentheses, may hold anything. */
static bool read_process(const char *pid, struct ghp_process *p)
{
    char path[64], text[512];
    const char *after;
    FILE *file;
    size_t n;
    int parent;

    snprintf(path, sizeof path, "/proc/%.20s/stat", pid);
    file = fopen(path, "re");
    if (file == NULL) return false;
    n = fread(text, 1, sizeof text - 1, file);
    fclose(file);
    text[n] = '\0';
    after = strrchr(text, ')');
    if (after == NULL || sscanf(after + 1, " %c %d", &p->state, &parent) != 2) return false;
    p->pid = (pid_t)strtol(pid, NULL, 10);
    p->parent = (pid_t)parent;
    return true;
}

bool ghp_process_lives(const struct ghp_process *process)
{
    return process->state != 'Z' && process->state != 'X';
}

void ghp_processes_visit(bool (*visit)(void *context, const struct ghp_process *process),
                         void *context)
{
    DIR *folder = opendir("/proc");
    const struct dirent *entry;
    struct ghp_process p;
    bool on = true;

    while (folder != NULL && on && (entry = readdir(folder)) != NULL) {
        if (entry->d_name[0] < '1' || entry->d_name[0] > '9') continue;
        if (read_process(entry->d_name, &p)) on = visit(context, &p);
    }
    if (folder != NULL) closedir(folder);
}
