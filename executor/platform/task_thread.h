/* executor/platform/task_thread.h - a thread that does jobs one after the other, concurrently with the thread that
 * posts them: reductions during a step, the loops that carry messages and make samples.
 *
 * It knows numbers, not instructions: a job is a whole number handed to one function. First in, first out; a failure
 * stops the thread, later jobs are dropped, and every wait reports that failure.
 *
 * Call order: open -> post, wait ... -> close. One thread posts and waits. */
#ifndef GHP_EXECUTOR_PLATFORM_TASK_THREAD_H
#define GHP_EXECUTOR_PLATFORM_TASK_THREAD_H

#include "core/base/status.h"

struct ghp_task_thread;

typedef enum ghp_status ghp_task_thread_fn(void *context, int job);

/* Starts the thread.
 *
 * capacity   jobs that may be waiting at once, >= 1
 * run        called on the thread for each job; context is handed through
 *
 * Returns   GHP_OK; GHP_ERR_NO_MEMORY
 * Tested    tests/executor/platform/test_task_thread.c */
enum ghp_status ghp_task_thread_open(int capacity, ghp_task_thread_fn *run, void *context,
                                     struct ghp_task_thread **thread);

/* Finishes the jobs posted so far and ends the thread; accepts NULL. */
void ghp_task_thread_close(struct ghp_task_thread *thread);

/* Adds a job; returns its ticket: 1, 2, 3, ... Waits if the queue is full. */
int64_t ghp_task_thread_post(struct ghp_task_thread *thread, int job);

/* Waits until the job with this ticket (and all before it) is done; ticket 0 is done.
 *
 * Returns   GHP_OK, or the failure of the job that failed, with its message */
enum ghp_status ghp_task_thread_wait(struct ghp_task_thread *thread, int64_t ticket);

#endif
