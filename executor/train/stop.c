/* executor/train/stop.c - see train/stop.h. */
#include "executor/train/stop.h"

#include "core/base/clock.h"
#include "executor/platform/activity.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <unistd.h>

/* From one telling to the next, which is a round of small messages. */
static const double period_s = 0.5;

/* SA_RESETHAND: a second one does what it would do without ghp, that is, ends the process. Not so SIGTERM: Slurm sends
 * it twice, one right after the other, when it preempts a job. */
static const struct {
    int number, flags;
    const char *name;
} signals[] = {{SIGTERM, SA_RESTART, "SIGTERM"},
               {SIGINT, (int)(SA_RESTART | SA_RESETHAND), "SIGINT"},
               {SIGUSR1, SA_RESTART, "SIGUSR1"}};
enum { N_SIGNALS = sizeof signals / sizeof signals[0] };

static atomic_int noted; /* the last one; 0: none */
static struct sigaction before[N_SIGNALS];

static void note(int number)
{
    noted = number;
    ghp_activity_interrupt(number);
}

/* Signals are handled here, amid nothing. The mask is that of the process before it listened. */
static void *receive(void *mask)
{
    pthread_sigmask(SIG_SETMASK, mask, NULL);
    for (;;)
        pause();
    return NULL;
}

enum ghp_status ghp_stop_listen(void)
{
    static sigset_t mask; /* the thread reads it when it comes to it */
    sigset_t ours;
    pthread_t thread;

    sigemptyset(&ours);
    for (int i = 0; i < N_SIGNALS; i++)
        sigaddset(&ours, signals[i].number);
    pthread_sigmask(SIG_BLOCK, &ours, &mask);
    if (pthread_create(&thread, NULL, receive, &mask) == 0) {
        pthread_detach(thread);
        return GHP_OK;
    }
    pthread_sigmask(SIG_SETMASK, &mask, NULL);
    return GHP_FAIL(GHP_ERR_NO_MEMORY,
                    "cannot start another thread; raise the limit of processes (ulimit -u)");
}

static void catch (struct sigaction kept[N_SIGNALS])
{
    noted = 0;
    for (int i = 0; i < N_SIGNALS; i++) {
        struct sigaction action = {.sa_handler = note, .sa_flags = signals[i].flags};

        sigaction(signals[i].number, &action, &kept[i]);
    }
}

void ghp_stop_leave_to_workers(void)
{
    struct sigaction forgotten[N_SIGNALS];

    catch (forgotten);
}

enum ghp_status ghp_stop_begin(struct ghp_stop *stop, const struct ghp_exec_context *exec,
                               int workers)
{
    struct ghp_ranks all = {.count = workers, .stride = 1};

    *stop = (struct ghp_stop){
        .control = exec->transport->control, .interval = 1, .left = 1, .since_s = ghp_now_s()};
    GHP_TRY(ghp_collectives_group(exec->transport->host, all, GHP_STREAM_COMPUTE, &stop->world));
    catch (before);
    return GHP_OK;
}

/* The next interval, from what all have told: `last` boundaries took the slowest worker so long. At most twice the last
 * one, since first steps are unlike later ones. */
static int64_t interval_of(int64_t last, double most_s)
{
    double times = most_s > 0 ? period_s / most_s : 2;

    return times > 2 ? 2 * last : times * (double)last > 1 ? (int64_t)(times * (double)last) : 1;
}

enum ghp_status ghp_stop_check(struct ghp_stop *stop, bool *ends)
{
    double now_s = ghp_now_s(), most_s = 0;
    const struct ghp_control_message *messages;
    struct ghp_control_message mine;

    *ends = stop != NULL && stop->signal != 0;
    if (stop == NULL || stop->signal != 0 || --stop->left > 0) return GHP_OK;
    mine = (struct ghp_control_message){now_s - stop->since_s, noted};
    messages = &mine;
    stop->world->label = "asking whether to continue";
    if (stop->world->ranks.count > 1)
        GHP_TRY(stop->control->ops->tell(stop->control, stop->world, mine, &messages));
    for (int i = 0; i < stop->world->ranks.count; i++) {
        if (messages[i].value > most_s) most_s = messages[i].value;
        if (stop->signal != 0 || messages[i].status == 0) continue;
        stop->signal = (int)messages[i].status;
        stop->worker = ghp_ranks_at(stop->world->ranks, i);
    }
    stop->told_s += most_s;
    if (stop->heartbeat != NULL) ghp_heartbeat_write(stop->heartbeat);
    *ends = stop->signal != 0;
    stop->left = stop->interval = interval_of(stop->interval, most_s);
    stop->since_s = now_s;
    return GHP_OK;
}

bool ghp_stop_told(const struct ghp_stop *stop)
{
    return stop != NULL && stop->left == stop->interval;
}

int ghp_stop_noted(void)
{
    return noted;
}

void ghp_stop_agree(struct ghp_stop *stop, int signal, int worker)
{
    stop->signal = signal;
    stop->worker = worker;
}

void ghp_stop_end(struct ghp_stop *stop)
{
    bool ends = stop->signal != 0;

    for (int i = 0; stop->world != NULL && i < N_SIGNALS; i++)
        if (!ends || signals[i].number == SIGINT) sigaction(signals[i].number, &before[i], NULL);
    stop->world = NULL;
}

const char *ghp_stop_signal_name(int number)
{
    for (int i = 0; i < N_SIGNALS; i++)
        if (signals[i].number == number) return signals[i].name;
    return "a signal";
}
