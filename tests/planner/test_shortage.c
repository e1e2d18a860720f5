/* ghp-test: timeout=300
 *
 * tests/planner/test_shortage.c - without memory, whichever allocation fails: the readers of networks, weights, plans,
 * profiles and machines, their writers, and the planner end in time with a sentence about memory, keep nothing, or do
 * all that was asked. Counted are crashes, hangs, silent successes and leaks, of which there are none.
 *
 * The linker gives this program's malloc and its like to all of ghp, Jansson and protobuf-c, which allocate by ghp's
 * own functions. Fast runs fail a part of the allocations of long subjects, spread evenly; full runs ten times as many.
 * GHP_EVERY=1 fails each. */
#include "core/base/file.h"
#include "core/cost/missing.h"
#include "core/model/safetensors.h"
#include "core/plan/plan_set.h"
#include "onnx/huggingface/huggingface.h"
#include "onnx/network.h"
#include "onnx/onnx.h"
#include "planner/make/sync_choice.h"
#include "tests/check.h"
#include "tests/planner/random_case.h"

#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- memory that fails where it is told to ---- */

static long taken, fails_at = -1; /* allocations while armed; which of them fails, -1: none */
static long held;                 /* blocks that ghp has and did not give back */
static bool armed, refused;

static bool fails(void)
{
    if (!armed || taken++ != fails_at) return false;
    refused = true;
    errno = ENOMEM;
    return true;
}

static void *counted(void *block)
{
    if (block != NULL) held++;
    return block;
}

/* The linker's names for what it puts in place of NAME, and for NAME itself. */
#define STAND_IN(type, name, parameters, arguments)                                                \
    type __real_##name parameters;                                                                 \
    type __wrap_##name parameters;                                                                 \
    type __wrap_##name parameters                                                                  \
    {                                                                                              \
        return fails() ? NULL : counted(__real_##name arguments);                                  \
    }

STAND_IN(void *, malloc, (size_t n), (n))
STAND_IN(void *, calloc, (size_t n, size_t size), (n, size))
STAND_IN(char *, strdup, (const char *text), (text))
STAND_IN(char *, strndup, (const char *text, size_t n), (text, n))
STAND_IN(char *, realpath, (const char *path, char *to), (path, to))

void *__real_realloc(void *block, size_t n);
void *__wrap_realloc(void *block, size_t n);
void *__wrap_realloc(void *block, size_t n)
{
    void *moved = fails() ? NULL : __real_realloc(block, n);

    return block == NULL ? counted(moved) : moved;
}

FILE *__real_open_memstream(char **text, size_t *n);
FILE *__wrap_open_memstream(char **text, size_t *n);
FILE *__wrap_open_memstream(char **text, size_t *n)
{
    FILE *stream = fails() ? NULL : __real_open_memstream(text, n);

    if (stream != NULL) held++; /* its text */
    return stream;
}

int __real_vasprintf(char **text, const char *format, va_list values);
int __wrap_vasprintf(char **text, const char *format, va_list values);
int __wrap_vasprintf(char **text, const char *format, va_list values)
{
    int n = fails() ? -1 : __real_vasprintf(text, format, values);

    if (n >= 0) held++;
    return n;
}

void __real_free(void *block);
void __wrap_free(void *block);
void __wrap_free(void *block)
{
    if (block != NULL) held--;
    __real_free(block);
}

/* ---- what is done without memory ---- */

enum { ANSWER_BYTES = 1 << 19 };
static char answer[ANSWER_BYTES]; /* what the subject gave, to be compared */
static char written[512];         /* a file in the test's folder */
static struct ghp_profile profile;
static struct ghp_model network;

/* Takes a written file as the answer; the memory for that does not fail. */
static enum ghp_status answer_file(void)
{
    FILE *file;
    size_t n;

    armed = false;
    file = fopen(written, "r");
    if (file == NULL) return GHP_FAIL(GHP_ERR_IO, "cannot read '%s' again", written);
    n = fread(answer, 1, sizeof answer - 1, file);
    answer[n] = '\0';
    fclose(file);
    return GHP_OK;
}

/* A reader and its writer. */
#define READ_AND_WRITE(name)                                                                       \
    static enum ghp_status again_##name(const char *path)                                          \
    {                                                                                              \
        struct name value = {0};                                                                   \
        enum ghp_status status;                                                                    \
                                                                                                   \
        GHP_TRY(name##_load(path, &value));                                                        \
        status = name##_save(written, &value);                                                     \
        if (status == GHP_OK) status = answer_file();                                              \
        name##_release(&value);                                                                    \
        return status;                                                                             \
    }

READ_AND_WRITE(ghp_plan)
READ_AND_WRITE(ghp_plan_set)
READ_AND_WRITE(ghp_profile)
READ_AND_WRITE(ghp_machine)
READ_AND_WRITE(ghp_missing)

static enum ghp_status read_network(const char *path)
{
    struct ghp_model model = {0};

    GHP_TRY(ghp_network_load(path, &model));
    snprintf(answer, sizeof answer, "%s", model.text);
    ghp_model_release(&model);
    return GHP_OK;
}

static enum ghp_status write_onnx(const char *path)
{
    (void)path;
    GHP_TRY(ghp_onnx_save(written, &network, NULL));
    return answer_file();
}

static enum ghp_status read_weights(const char *path)
{
    snprintf(answer, sizeof answer, "sound");
    return ghp_network_check_weights(path);
}

static enum ghp_status read_folder(const char *path)
{
    struct ghp_hf_weights *weights = NULL;
    enum ghp_status status;
    float values[32 * 128];

    GHP_TRY(ghp_hf_weights_open(path, &weights));
    status = ghp_hf_weights_read(weights, 2, 4, values);
    snprintf(answer, sizeof answer, "%d tensors, %.9g", ghp_hf_weights_count(weights), values[0]);
    ghp_hf_weights_close(weights);
    return status;
}

static enum ghp_status read_safetensors(const char *path)
{
    struct ghp_safetensors *file = NULL;

    GHP_TRY(ghp_safetensors_open(path, &file));
    snprintf(answer, sizeof answer, "%d tensors", ghp_safetensors_count(file));
    ghp_safetensors_close(file);
    return GHP_OK;
}

/* Plans for four workers; the plan is compared by what it says of each layer. */
static enum ghp_status plan(bool break_even)
{
    struct ghp_plan_request request = {.model_path = "lenet5.json",
                                       .profile_path = "profile.json",
                                       .model = &network,
                                       .profile = &profile,
                                       .problem = {4, 64},
                                       .method.bucket_bytes = GHP_BUCKET_AUTO,
                                       .time_limit_s = 30,
                                       .simplify = true,
                                       .break_even = break_even};
    struct ghp_plan found = {0};
    size_t n = 0;

    GHP_TRY(ghp_plan_make_synced(&request, &found));
    for (int i = 0; i < found.model.n_layers; i++)
        n += (size_t)snprintf(answer + n, sizeof answer - n, "%d %d\n", (int)found.splits[i].kind,
                              found.splits[i].tp_size);
    snprintf(answer + n, sizeof answer - n, "%.12g", found.predicted.step_s);
    ghp_plan_release(&found);
    return GHP_OK;
}

static enum ghp_status plan_alone(const char *path)
{
    (void)path;
    return plan(false);
}

static enum ghp_status plan_with_break_even(const char *path)
{
    (void)path;
    return plan(true);
}

/* ---- the subjects ---- */

struct subject {
    const char *name;
    enum ghp_status (*run)(const char *path);
    const char *path; /* below the sources; NULL: of the test's folder */
    int tries;        /* how many of its allocations fast runs fail, about */
};

#define SEEDS "tests/fuzz/seeds/"
static const struct subject subjects[] = {
    {"a network in JSON", read_network, "models/small-resnet.json", 300},
    {"a language model in JSON", read_network, "models/gpt-nano.json", 200},
    {"a network in ONNX", read_network, SEEDS "onnx/small-resnet.onnx", 500},
    {"every operation in ONNX", read_network, SEEDS "onnx/every-operation.onnx", 300},
    {"tokens in ONNX", read_network, SEEDS "onnx/tokens.onnx", 300},
    {"weights in ONNX", read_weights, SEEDS "onnx/lenet5.onnx", 300},
    {"writing ONNX", write_onnx, "", 300},
    {"a folder of transformers", read_network, NULL, 500},
    {"weights of a folder", read_folder, NULL, 300},
    {"safetensors", read_safetensors, SEEDS "safetensors/two.safetensors", 300},
    {"a plan", again_ghp_plan, SEEDS "plan/measured.json", 400},
    {"a sharded plan", again_ghp_plan, SEEDS "plan/sharded.json", 200},
    {"a set of plans", again_ghp_plan_set, SEEDS "plans/left-out.json", 200},
    {"a profile", again_ghp_profile, SEEDS "profile/measured.json", 400},
    {"a machine", again_ghp_machine, SEEDS "machine/synthetic.json", 200},
    {"what is to be measured", again_ghp_missing, SEEDS "wanted/operations.json", 200},
    {"planning", plan_alone, "", 250},
    {"planning, with break-even values", plan_with_break_even, "", 60},
};

/* What a child counts for its parent, which continues after a crash. */
struct tally {
    long at, runs, crashes, hangs, silent, leaks, unsaid;
};
static struct tally *tally;
enum { LIMIT_S = 60 };

/* Runs the subject with allocation `at` failing; -1: none. */
static enum ghp_status attempt(const struct subject *subject, const char *path, long at)
{
    enum ghp_status status;

    memset(answer, 0, 64);
    taken = 0;
    fails_at = at;
    refused = false;
    armed = true;
    status = subject->run(path);
    armed = false;
    return status;
}

static void complain(const struct subject *subject, const char *what)
{
    fprintf(stderr, "%s, allocation %ld: %s: %s\n", subject->name, tally->at, what,
            ghp_status_message());
}

/* In a child of its own: fails allocations from tally->at on. */
static void fail_each(const struct subject *subject, const char *path, long n, long step)
{
    static char expected[ANSWER_BYTES];

    (void)attempt(subject, path, -1);
    memcpy(expected, answer, sizeof expected);
    for (; tally->at < n; tally->at += step) {
        long before = held;
        enum ghp_status status;

        alarm(LIMIT_S);
        status = attempt(subject, path, tally->at);
        alarm(0);
        tally->runs++;
        if (held > before) {
            tally->leaks++;
            complain(subject, "leaks");
        }
        if (status == GHP_OK && refused && strcmp(expected, answer) != 0) {
            tally->silent++;
            complain(subject, "succeeds, and gives another answer");
        } else if (status != GHP_OK && strstr(ghp_status_message(), "memory") == NULL) {
            tally->unsaid++;
            complain(subject, "says nothing of memory");
        }
    }
    _exit(0);
}

/* Returns   whether the child came to the end */
static bool child_ends(const struct subject *subject, const char *path, long n, long step)
{
    pid_t child = fork();
    int ended = 0;

    if (child == 0) fail_each(subject, path, n, step);
    if (!CHECK(child > 0 && waitpid(child, &ended, 0) == child)) return true;
    if (WIFEXITED(ended) && WEXITSTATUS(ended) == 0) return true;
    tally->runs++;
    if (WIFSIGNALED(ended) && WTERMSIG(ended) == SIGALRM)
        tally->hangs++;
    else
        tally->crashes++;
    fprintf(stderr, "%s, allocation %ld: ends with %s %d\n", subject->name, tally->at,
            WIFSIGNALED(ended) ? "signal" : "exit code",
            WIFSIGNALED(ended) ? WTERMSIG(ended) : WEXITSTATUS(ended));
    tally->at += step;
    return false;
}

static void test_subject(const struct subject *subject, const char *folder)
{
    char path[512];
    long n, step, tries = check_full() ? 10L * subject->tries : subject->tries;

    snprintf(path, sizeof path, "%s/%s", subject->path != NULL ? GHP_SOURCE_DIR : folder,
             subject->path != NULL ? subject->path : "hf");
    if (!CHECK_STATUS(attempt(subject, path, -1), GHP_OK)) return;
    (void)attempt(subject, path, -1); /* what is kept for all calls is there now */
    n = taken;
    step = getenv("GHP_EVERY") != NULL ? 1 : n / tries + 1;
    CHECK(n > 0);
    tally->at = 0;
    while (!child_ends(subject, path, n, step)) {
    }
    printf("%s: %ld allocations, each %ld. failed\n", subject->name, n, step);
    fflush(stdout);
}

static enum ghp_status zeros(void *context, const struct ghp_param *param, float *values)
{
    (void)context;
    memset(values, 0, (size_t)param->elements * sizeof *values);
    return GHP_OK;
}

int main(void)
{
    const struct ghp_hf_source source = {.read = zeros};
    struct ghp_model gpt = {0};
    char folder[600];

    tally = mmap(NULL, sizeof *tally, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (!CHECK(tally != MAP_FAILED)) return check_end();
    snprintf(written, sizeof written, "%s/written.onnx", check_folder());
    snprintf(folder, sizeof folder, "%s/hf", check_folder());
    if (!CHECK_STATUS(ghp_network_load(GHP_SOURCE_DIR "/models/lenet5.json", &network), GHP_OK) ||
        !CHECK_STATUS(ghp_network_load(GHP_SOURCE_DIR "/models/gpt-nano.json", &gpt), GHP_OK) ||
        !CHECK_STATUS(ghp_hf_save(folder, &gpt, NULL, &source), GHP_OK) ||
        !CHECK_STATUS(analytic_profile(1e11, 1e8, 1e-5, &profile), GHP_OK))
        return check_end();
    ghp_model_release(&gpt);
    for (size_t i = 0; i < sizeof subjects / sizeof subjects[0]; i++)
        test_subject(&subjects[i], check_folder());
    printf("allocations failed %ld: %ld crashes, %ld hangs, %ld silent successes, %ld leaks, %ld "
           "without a word of "
           "memory\n",
           tally->runs, tally->crashes, tally->hangs, tally->silent, tally->leaks, tally->unsaid);
    CHECK(tally->runs > 0);
    CHECK_EQ(tally->crashes + tally->hangs + tally->silent + tally->leaks + tally->unsaid, 0);
    ghp_profile_release(&profile);
    ghp_model_release(&network);
    return check_end();
}
