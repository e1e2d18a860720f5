/* executor/launcher/command.c - see command.h. */
#include "executor/launcher/command.h"

#include "core/base/log.h"
#include "executor/launcher/relay.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { CANNOT_RUN = 127 };

void ghp_command_add(struct ghp_command *command, const char *word)
{
    if (command->n + 1 >= command->room) {
        int room = 2 * command->room + 64;
        const char **args = realloc(command->args, (size_t)room * sizeof *args);

        command->lacks_memory = command->lacks_memory || args == NULL;
        if (args == NULL) return;
        command->args = args;
        command->room = room;
    }
    command->args[command->n++] = word;
    command->args[command->n] = NULL;
}

void ghp_command_add_option(struct ghp_command *command, const char *name, const char *value)
{
    if (value == NULL) return;
    ghp_command_add(command, name);
    ghp_command_add(command, value);
}

static const int passed_on[] = {SIGTERM, SIGINT, SIGUSR1, SIGHUP};
enum { N_PASSED_ON = sizeof passed_on / sizeof passed_on[0] };

static volatile sig_atomic_t running;  /* the process of the command; 0: none */
static volatile sig_atomic_t requests; /* to end the training */

/* The first one is SIGUSR1 to mpirun, which ends the training in order: after SIGTERM or SIGINT mpirun kills workers
 * one second later. A second one ends it at once. */
static void pass_on(int number)
{
    int before = errno;

    (void)number;
    if (running > 0) kill((pid_t)running, requests == 0 ? SIGUSR1 : SIGTERM);
    requests++;
    errno = before;
}

static void (*on_signal)(int);
static volatile sig_atomic_t terms;

/* Slurm sends SIGTERM twice when it preempts a job: one request. */
static void hear(int number)
{
    if (number != SIGTERM || terms++ == 0) on_signal(number);
}

void ghp_command_on_signals(void (*handler)(int))
{
    struct sigaction action = {.sa_handler = hear}, before;

    on_signal = handler;
    for (int i = 0; i < N_PASSED_ON; i++)
        if (passed_on[i] != SIGHUP || sigaction(SIGHUP, NULL, &before) != 0 ||
            before.sa_handler != SIG_IGN)
            sigaction(passed_on[i], &action, NULL);
}

void ghp_command_pass_signals(void)
{
    ghp_command_on_signals(pass_on);
}

bool ghp_command_was_stopped(void)
{
    return requests > 0;
}

/* The command in this process; only a failure returns. The training is out of reach of the terminal, whose Ctrl-C is
 * passed on. */
static _Noreturn void become(const struct ghp_command *command, int out, pid_t parent)
{
    if (command->quiet && freopen("/dev/null", "w", stdout) == NULL) _exit(CANNOT_RUN);
    if (command->result) {
        int null = open("/dev/null", O_RDONLY);

        setpgid(0, 0);
        if (null >= 0) dup2(null, 0);
    }
    prctl(PR_SET_PDEATHSIG, (long)SIGTERM, 0L, 0L, 0L);
    if (getppid() == parent && (command->quiet || dup2(command->result ? out : 2, 1) >= 0))
        execvp(command->args[0], (char **)(uintptr_t)command->args);
    ghp_log_failure("cannot run '%s': %s; install it, or see --mpirun", command->args[0],
                    strerror(errno));
    _exit(CANNOT_RUN);
}

const char *ghp_command_program(const char *line, char text[GHP_PROGRAM_TEXT])
{
    const char *name = line + strspn(line, " "), *end = name + strcspn(name, " ");

    for (const char *at = name; at < end; at++)
        if (*at == '/') name = at + 1;
    snprintf(text, GHP_PROGRAM_TEXT, "%.*s", (int)(end - name), name);
    return text;
}

/* Runs it to its end. *code receives its exit code; of a signal 128 and its number, as shells say. */
static enum ghp_status start_and_wait(const struct ghp_command *command, int *code)
{
    pid_t self = getpid(), child;
    sigset_t held, before;
    int ended = 0, out[2] = {-1, -1};

    *code = GHP_EXIT_STOPPED;
    if (ghp_command_was_stopped()) return GHP_OK; /* between two commands */
    if (command->result) GHP_TRY(ghp_relay_open(out));
    fflush(NULL);
    sigemptyset(&held);
    for (int i = 0; i < N_PASSED_ON; i++)
        sigaddset(&held, passed_on[i]);
    sigprocmask(SIG_BLOCK, &held, &before); /* until it is known whom to pass them on to */
    child = fork();
    if (child > 0) running = child;
    sigprocmask(SIG_SETMASK, &before, NULL);
    if (child == 0) become(command, out[1], self);
    if (child < 0)
        return GHP_FAIL(GHP_ERR_INTERNAL,
                        "cannot start a process: %s; raise the limit of processes",
                        strerror(errno));
    if (command->result) {
        close(out[1]);
        while (ghp_relay_pass(out[0])) {
        }
        close(out[0]);
    }
    while (waitpid(child, &ended, 0) < 0)
        if (errno != EINTR)
            return GHP_FAIL(GHP_ERR_INTERNAL, "lost '%s': %s; report this", command->args[0],
                            strerror(errno));
    running = 0;
    *code = WIFEXITED(ended) ? WEXITSTATUS(ended) : 128 + WTERMSIG(ended);
    return GHP_OK;
}

enum ghp_status ghp_command_run(struct ghp_command *command, int *code)
{
    enum ghp_status status =
        command->lacks_memory ? GHP_NO_MEMORY() : start_and_wait(command, code);

    free(command->args);
    command->args = NULL;
    return status;
}
