/* Only regular files are read, at once; no name, link or pipe that is there already leads a write elsewhere. */
#include "core/base/file.h"
#include "core/base/heartbeat.h"
#include "core/base/leftover.h"
#include "core/model/safetensors.h"
#include "tests/check.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

static void check_kept(const char *path)
{
    char *text = NULL;

    CHECK_STATUS(ghp_file_read(path, &text, NULL), GHP_OK);
    CHECK_TEXT(text, "precious");
    free(text);
}

/* The names that a writer will choose are there already, as links to somebody's file. */
static void check_links(void)
{
    struct ghp_safetensor tensor = {
        .name = "w", .n_dims = 1, .dims = {1}, .element_bytes = 4, .bytes = 4};
    struct ghp_safetensors_list list = {.n = 1, .tensors = &tensor};
    struct ghp_safetensors_writer *writer = NULL;
    char name[512];
    float value = 1;

    CHECK_STATUS(ghp_file_write_atomic("precious", "precious", 8), GHP_OK);
    ghp_leftover_name("weights", name, sizeof name);
    CHECK(symlink("precious", name) == 0);
    CHECK_STATUS(ghp_safetensors_begin("weights", &list, &writer), GHP_OK);
    if (writer != NULL) CHECK_STATUS(ghp_safetensors_append(writer, &value, 4), GHP_OK);
    if (writer != NULL) CHECK_STATUS(ghp_safetensors_finish(writer), GHP_OK);
    check_kept("precious");
    ghp_leftover_name("plan", name, sizeof name);
    CHECK(symlink("precious", name) == 0);
    CHECK_STATUS(ghp_file_write_atomic("plan", "a plan", 6), GHP_OK);
    check_kept("precious");
}

/* A link of another user; only root can make one here. */
static void check_foreign_links(void)
{
    struct ghp_heartbeat h = {.fd = 0};
    int fd = -1;

    CHECK(symlink("precious", "theirs") == 0);
    if (lchown("theirs", 65534, 65534) != 0) return;
    CHECK_STATUS(ghp_heartbeat_open("theirs", &h), GHP_ERR_IO);
    CHECK_MESSAGE("another user");
    CHECK_STATUS(ghp_file_open_output("theirs", true, &fd), GHP_ERR_IO);
    CHECK_STATUS(ghp_file_write_atomic("theirs", "x", 1), GHP_ERR_IO);
    CHECK_STATUS(ghp_file_try_write("theirs"), GHP_ERR_IO);
    check_kept("precious");
}

static void check_refused(const char *path)
{
    struct ghp_safetensors *file = NULL;
    char *text = NULL;
    int fd = 0;

    CHECK_STATUS(ghp_file_read(path, &text, NULL), GHP_ERR_IO);
    CHECK_MESSAGE("regular file");
    CHECK(text == NULL);
    CHECK_STATUS(ghp_file_open(path, &fd), GHP_ERR_IO);
    CHECK_EQ(fd, -1);
    CHECK_STATUS(ghp_safetensors_open(path, &file), GHP_ERR_IO);
    CHECK_EQ(ghp_heartbeat_read(path).step, 0);
}

static void check_kinds(void)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX, .sun_path = "socket"};
    int wire = socket(AF_UNIX, SOCK_STREAM, 0), fd = -1;
    struct ghp_heartbeat h;

    alarm(20); /* nothing waits */
    CHECK(mkfifo("pipe", 0600) == 0);
    CHECK(bind(wire, (struct sockaddr *)&address, sizeof address) == 0);
    check_refused("pipe");
    check_refused("socket");
    check_refused("/dev/zero");
    CHECK_STATUS(ghp_heartbeat_open("pipe", &h), GHP_ERR_IO);
    CHECK_MESSAGE("start what reads this pipe first");
    CHECK_STATUS(ghp_file_write_atomic("pipe", "x", 1), GHP_ERR_IO);
    CHECK_STATUS(ghp_file_open_output("/dev/null", false, &fd), GHP_OK);
    close(fd);
    close(wire);
    alarm(0);
}

/* What a shell's <(command) gives is read. */
static void check_own_pipe(void)
{
    char name[32], *text = NULL;
    int ends[2];

    if (pipe(ends) != 0 || write(ends[1], "plan", 4) != 4) exit(1);
    close(ends[1]);
    snprintf(name, sizeof name, "/dev/fd/%d", ends[0]);
    CHECK_STATUS(ghp_file_read(name, &text, NULL), GHP_OK);
    CHECK_TEXT(text, "plan");
    free(text);
    close(ends[0]);
}

/* A sparse file of a terabyte takes no memory. */
static void check_large(void)
{
    char *text = NULL;
    int fd = open("large", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

    if (ftruncate(fd, (off_t)1 << 40) == 0) {
        CHECK_STATUS(ghp_file_read("large", &text, NULL), GHP_ERR_IO);
        CHECK_MESSAGE("at most 4 GiB");
    }
    close(fd);
}

static void check_try(void)
{
    CHECK_STATUS(ghp_file_try_write("nowhere/plan"), GHP_ERR_IO);
    CHECK_MESSAGE("create its folder first");
    CHECK_STATUS(ghp_file_try_write("."), GHP_ERR_IO);
    CHECK_STATUS(ghp_file_try_write("precious"), GHP_OK);
    check_kept("precious");
    CHECK_STATUS(ghp_file_try_write("new"), GHP_OK);
    CHECK(access("new", F_OK) != 0);
    CHECK_STATUS(ghp_file_try_write("/dev/null"), GHP_OK);
}

CHECK_TEST(file_open)
{
    if (chdir(check_folder()) != 0) return 1;
    check_links();
    check_foreign_links();
    check_kinds();
    check_own_pipe();
    check_large();
    check_try();
    return check_end();
}
