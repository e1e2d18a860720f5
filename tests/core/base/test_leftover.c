/* tests/core/base/test_leftover.c - temporary files of killed writers are removed. Those of living writers and of other
 * hosts stay, as do other files. */
#include "core/model/safetensors.h"
#include "tests/check.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static const char *folder;
static char path[64];

static int count(void)
{
    DIR *open = opendir(folder);
    int n = 0;

    for (struct dirent *file; (file = readdir(open)) != NULL;)
        n += file->d_name[0] != '.';
    closedir(open);
    return n;
}

static void make(const char *suffix)
{
    char name[512];
    int file;

    snprintf(name, sizeof name, "%s.tmp-%s", path, suffix);
    file = open(name, O_CREAT | O_WRONLY, 0600);
    CHECK(file >= 0);
    close(file);
}

/* Starts a process that begins a file and stays alive; returns once it has begun. */
static pid_t start_writer(void)
{
    int said[2];
    char byte = 0;
    pid_t writer;

    if (pipe(said) != 0 || (writer = fork()) < 0) exit(1);
    if (writer == 0) {
        struct ghp_safetensor tensor = {.name = "w", .n_dims = 1, .dims = {1}, .element_bytes = 4};
        struct ghp_safetensors_list list = {.n = 1, .tensors = &tensor};
        struct ghp_safetensors_writer *file = NULL;

        if (ghp_safetensors_begin(path, &list, &file) != GHP_OK) _exit(1);
        if (write(said[1], &byte, 1) != 1) _exit(1);
        for (;;)
            pause();
    }
    if (read(said[0], &byte, 1) != 1) exit(1);
    close(said[0]);
    close(said[1]);
    return writer;
}

CHECK_TEST(leftover)
{
    char host[256] = "", name[512];
    pid_t writer;

    folder = check_folder();
    if (gethostname(host, sizeof host - 1) != 0) return 1;
    snprintf(path, sizeof path, "%s/kept", folder);
    writer = start_writer();
    CHECK_EQ(count(), 1);
    ghp_safetensors_clean(path);
    CHECK_EQ(count(), 1); /* it lives */
    kill(writer, SIGKILL);
    waitpid(writer, NULL, 0);
    ghp_safetensors_clean(path);
    CHECK_EQ(count(), 0);

    snprintf(name, sizeof name, "elsewhere.example-%ld", (long)writer);
    make(name); /* of another host */
    snprintf(name, sizeof name, "%s-%ld", host, (long)getppid());
    make(name); /* its writer's number is somebody's */
    snprintf(name, sizeof name, "%s-%ldx", host, (long)writer);
    make(name); /* no such name */
    snprintf(name, sizeof name, "%s.tmp-%s-%ld", path, host, (long)writer);
    CHECK(symlink("/etc/hostname", name) == 0); /* nobody's file */
    ghp_safetensors_clean(path);
    CHECK_EQ(count(), 4);
    CHECK(unlink(name) == 0);
    snprintf(name, sizeof name, "%s-%ld", host, (long)writer);
    make(name);
    ghp_safetensors_clean(path);
    CHECK_EQ(count(), 3);
    return check_end();
}
