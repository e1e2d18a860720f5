/* executor/platform/limits.c - see limits.h. */
#include "executor/platform/limits.h"

#include "core/base/log.h"
#include "core/base/units.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PATH_BYTES = 1024 };
static const int64_t unlimited_bytes = INT64_C(1)
                                       << 60; /* version 1 says the largest number for none */

struct group { /* of this process, for one controller */
    int version;
    char top[PATH_BYTES]; /* where the controller's groups are to be seen */
    char at[PATH_BYTES];  /* this process's, at or below it */
};

/* ---- where the group is ---- */

/* Whether a list such as "cpu,cpuacct" has the word. */
static bool has_word(const char *list, const char *word)
{
    size_t n = strlen(word);

    for (const char *at = list; (at = strstr(at, word)) != NULL; at += n)
        if ((at == list || at[-1] == ',') && strchr(",\n ", at[n]) != NULL) return true;
    return false;
}

/* The process's group by /proc/self/cgroup, into path; false if there is none of that version. */
static bool find_path(const char *root, const char *controller, int version, char path[PATH_BYTES])
{
    char name[PATH_BYTES], line[2 * PATH_BYTES];
    bool found = false;
    FILE *file;

    snprintf(name, sizeof name, "%.512s/proc/self/cgroup", root);
    file = fopen(name, "r");
    while (file != NULL && !found && fgets(line, sizeof line, file) != NULL) {
        char *list = strchr(line, ':'), *at = list != NULL ? strchr(list + 1, ':') : NULL;

        if (at == NULL) continue;
        *at++ = '\0';
        at[strcspn(at, "\n")] = '\0';
        found = version == 2 ? list[1] == '\0' : has_word(list + 1, controller);
        if (found) snprintf(path, PATH_BYTES, "%.1000s", at);
    }
    if (file != NULL) fclose(file);
    return found;
}

/* Finds in /proc/self/mountinfo where such groups are mounted (top), and which of them is mounted there (base). */
static bool find_mount(const char *root, const char *controller, int version, char top[PATH_BYTES],
                       char base[PATH_BYTES])
{
    char name[PATH_BYTES], line[4 * PATH_BYTES], type[32], options[PATH_BYTES];
    bool found = false;
    FILE *file;

    snprintf(name, sizeof name, "%.512s/proc/self/mountinfo", root);
    file = fopen(name, "r");
    while (file != NULL && !found && fgets(line, sizeof line, file) != NULL) {
        const char *rest = strstr(line, " - ");

        if (rest == NULL || sscanf(rest, " - %31s %*s %1000s", type, options) != 2) continue;
        if (strcmp(type, version == 2 ? "cgroup2" : "cgroup") != 0) continue;
        if (version == 1 && !has_word(options, controller)) continue;
        found = sscanf(line, "%*s %*s %*s %1000s %1000s", base, top) == 2;
    }
    if (file != NULL) fclose(file);
    return found;
}

/* false: this process is in no group of that version. A group that cannot be seen from here, as one outside of the
 * container, counts as the topmost that can. */
static bool find_group(const char *root, const char *controller, int version, struct group *group)
{
    char path[PATH_BYTES], base[PATH_BYTES];
    const char *below = path;
    size_t n;

    group->version = version;
    if (!find_path(root, controller, version, path) ||
        !find_mount(root, controller, version, group->top, base))
        return false;
    n = strcmp(base, "/") == 0 ? 0 : strlen(base);
    below = strncmp(path, base, n) == 0 && (path[n] == '/' || path[n] == '\0') ? path + n : "";
    if (strstr(below, "/..") != NULL || strcmp(below, "/") == 0) below = "";
    return snprintf(group->at, sizeof group->at, "%s%s", group->top, below) < (int)sizeof group->at;
}

/* Goes one group up; false at the top. */
static bool go_up(struct group *group)
{
    char *slash = strrchr(group->at, '/');

    if (strlen(group->at) <= strlen(group->top) || slash == NULL) return false;
    *slash = '\0';
    return true;
}

/* ---- what its files say ---- */

/* The first line of a file of the group; false if there is none. */
static bool read_line(const char *root, const struct group *group, const char *name, char line[64])
{
    char path[2 * PATH_BYTES];
    bool found;
    FILE *file;

    snprintf(path, sizeof path, "%.512s%s/%s", root, group->at, name);
    file = fopen(path, "r");
    if (file == NULL) return false;
    found = fgets(line, 64, file) != NULL;
    fclose(file);
    return found;
}

static int64_t read_number(const char *root, const struct group *group, const char *name)
{
    char line[64];

    return read_line(root, group, name, line) ? strtoll(line, NULL, 10) : -1;
}

static void note_file(char by[GHP_LIMITS_TEXT_BYTES], const struct group *group, const char *name)
{
    snprintf(by, GHP_LIMITS_TEXT_BYTES, "%.200s/%s", group->at, name);
}

static void look_cores(const char *root, const struct group *group, struct ghp_limits *limits)
{
    static const char *const names[] = {"", "cpu.cfs_quota_us", "cpu.max"};
    double quota = 0, period = 0;
    char line[64];

    if (!read_line(root, group, names[group->version], line)) return;
    if (group->version == 2 && sscanf(line, "%lf %lf", &quota, &period) != 2) return; /* "max" */
    if (group->version == 1) {
        quota = (double)strtoll(line, NULL, 10); /* -1: none */
        period = (double)read_number(root, group, "cpu.cfs_period_us");
    }
    if (quota <= 0 || period <= 0) return;
    if (limits->cores > 0 && quota / period >= limits->cores) return;
    limits->cores = quota / period;
    note_file(limits->cores_by, group, names[group->version]);
}

/* Pages of files that nobody used lately, which the system drops before it refuses memory [bytes]. */
static int64_t droppable(const char *root, const struct group *group)
{
    const char *key = group->version == 2 ? "inactive_file" : "total_inactive_file";
    char path[2 * PATH_BYTES], line[128];
    int64_t bytes = 0;
    size_t n = strlen(key);
    FILE *file;

    snprintf(path, sizeof path, "%.512s%s/memory.stat", root, group->at);
    file = fopen(path, "r");
    while (file != NULL && fgets(line, sizeof line, file) != NULL)
        if (strncmp(line, key, n) == 0 && line[n] == ' ') bytes = strtoll(line + n, NULL, 10);
    if (file != NULL) fclose(file);
    return bytes > 0 ? bytes : 0;
}

/* A limit of memory, what is left before it, and who says so. */
static void take_memory(struct ghp_limits *limits, int64_t limit, int64_t left, const char *by)
{
    if (limits->memory_left_bytes < 0 || left < limits->memory_left_bytes)
        limits->memory_left_bytes = left;
    if (limits->memory_bytes > 0 && limit >= limits->memory_bytes) return;
    limits->memory_bytes = limit;
    snprintf(limits->memory_by, sizeof limits->memory_by, "%s", by);
}

static void look_memory(const char *root, const struct group *group, struct ghp_limits *limits)
{
    static const char *const names[] = {"", "memory.limit_in_bytes", "memory.max"};
    static const char *const used_names[] = {"", "memory.usage_in_bytes", "memory.current"};
    int64_t limit, used, left;
    char line[64], by[GHP_LIMITS_TEXT_BYTES];

    if (!read_line(root, group, names[group->version], line)) return;
    limit = strtoll(line, NULL, 10); /* "max": 0 */
    if (limit <= 0 || limit >= unlimited_bytes) return;
    used = read_number(root, group, used_names[group->version]);
    left = used < 0 ? limit : limit - used + droppable(root, group);
    note_file(by, group, names[group->version]);
    take_memory(limits, limit, left < 0 ? 0 : left, by);
}

/* What Slurm allots to the job on this node. A process that takes more takes it from other jobs, and is killed if Slurm
 * enforces it. A control group says the same only if Slurm makes one. */
static void look_slurm(struct ghp_limits *limits)
{
    const char *node = getenv("SLURM_MEM_PER_NODE"), *cpu = getenv("SLURM_MEM_PER_CPU"),
               *cpus = getenv("SLURM_CPUS_ON_NODE");
    int64_t mib = node != NULL                  ? strtoll(node, NULL, 10)
                  : cpu != NULL && cpus != NULL ? strtoll(cpu, NULL, 10) * strtoll(cpus, NULL, 10)
                                                : 0; /* all of the node's */

    if (getenv("SLURM_JOB_ID") == NULL || mib <= 0 || mib >= unlimited_bytes >> 20) return;
    take_memory(limits, mib << 20, mib << 20,
                node != NULL ? "SLURM_MEM_PER_NODE" : "SLURM_MEM_PER_CPU");
}

void ghp_limits_read(const char *root, struct ghp_limits *limits)
{
    *limits = (struct ghp_limits){.memory_left_bytes = -1};
    for (int version = 1; version <= 2; version++) {
        struct group group;
        bool in = find_group(root, "cpu", version, &group);

        for (; in; in = go_up(&group))
            look_cores(root, &group, limits);
        in = find_group(root, "memory", version, &group);
        for (; in; in = go_up(&group))
            look_memory(root, &group, limits);
    }
    if (root[0] == '\0') look_slurm(limits);
}

int ghp_limits_cores(const struct ghp_limits *limits, int n)
{
    if (limits->cores <= 0 || limits->cores >= n) return n;
    return limits->cores < 1 ? 1 : (int)limits->cores;
}

const char *ghp_limits_text(const struct ghp_limits *limits, char *text, size_t bytes)
{
    int online = (int)sysconf(_SC_NPROCESSORS_ONLN), cores = ghp_limits_cores(limits, online);
    int64_t memory_bytes = (int64_t)sysconf(_SC_PHYS_PAGES) * sysconf(_SC_PAGESIZE);
    char size[32];
    size_t n = 0;

    text[0] = '\0';
    if (cores < online)
        n = (size_t)snprintf(text, bytes, "%d core%s by %s", cores, ghp_plural(cores),
                             limits->cores_by);
    if (n < bytes && limits->memory_bytes > 0 && limits->memory_bytes < memory_bytes)
        snprintf(text + n, bytes - n, "%s%s of memory by %s", n > 0 ? " and " : "",
                 ghp_bytes_format((double)limits->memory_bytes, size, sizeof size),
                 limits->memory_by);
    return text;
}

void ghp_limits_note(void)
{
    struct ghp_limits limits;
    char text[3 * GHP_LIMITS_TEXT_BYTES];

    ghp_limits_read("", &limits);
    if (ghp_limits_text(&limits, text, sizeof text)[0] != '\0')
        ghp_note("this machine is limited to %s", text);
}

int ghp_limits_count(const struct ghp_processors *processors)
{
    struct ghp_limits limits;

    ghp_limits_read("", &limits);
    return ghp_limits_cores(&limits, ghp_processors_count(processors));
}
