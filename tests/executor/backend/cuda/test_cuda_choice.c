/* Which implementation wins, how choices are kept and named, where scratch begins, and what failures say: what of the
 * cuda backend needs no GPU. */
#include "tests/executor/op_case.h"
#include "tests/check.h"

#include "executor/backend/cuda/backend_cuda_private.h"

static void check_best(void)
{
    const struct ghp_timed_choice plain[] = {{3e-3, 10}, {1e-3, 500}, {2e-3, 0}};
    const struct ghp_timed_choice near[] = {
        {1.00e-3, 500}, {1.02e-3, 100}, {1.029e-3, 100}, {1.04e-3, 0}};
    const struct ghp_timed_choice failed[] = {{-1, 0}, {5e-3, 7}, {-1, 0}};

    CHECK_EQ(ghp_choice_best(plain, 3), 1); /* memory counts only among equals */
    CHECK_EQ(ghp_choice_best(near, 4), 1);  /* 3 % are equal; then the least, then the fastest */
    CHECK_EQ(ghp_choice_best(failed, 3), 1);
    CHECK_EQ(ghp_choice_best(failed, 1), -1);
    CHECK_EQ(ghp_choice_best(failed, 0), -1);
}

static void check_kept(void)
{
    struct ghp_choices choices = {0};
    char name[GHP_CHOICE_NAME_BYTES];
    int n;
    const struct ghp_local *cases = op_case_all(&n);
    struct ghp_local more = cases[0];
    const struct ghp_chosen forward = {.local = &cases[0], .pass = GHP_PASS_FORWARD},
                            back = {.local = &cases[0], .pass = GHP_PASS_BACKWARD_DATA},
                            bias = {.local = &cases[0], .pass = GHP_PASS_FORWARD, .bias = true},
                            relu = {.local = &cases[0], .pass = GHP_PASS_FORWARD, .relu = true},
                            sums = {.local = &cases[0], .pass = GHP_PASS_FORWARD, .sums = true},
                            other = {.local = &more, .pass = GHP_PASS_FORWARD};

    CHECK(ghp_choices_find(&choices, forward) == NULL);
    for (int i = 0; i < n; i++)
        for (int pass = 0; pass < 2; pass++) {
            struct ghp_chosen chosen = {.local = &cases[i], .pass = (enum ghp_pass)pass};

            snprintf(name, sizeof name, "eng%d %d", i, pass);
            CHECK_STATUS(ghp_choices_keep(&choices, chosen, name), GHP_OK);
        }
    CHECK_TEXT(ghp_choices_find(&choices, back), "eng0 1");
    CHECK_STATUS(ghp_choices_keep(&choices, forward, "again"), GHP_OK);
    CHECK_TEXT(ghp_choices_find(&choices, forward), "again");
    CHECK(ghp_choices_find(&choices, bias) == NULL);
    CHECK_STATUS(ghp_choices_keep(&choices, bias, "alone & fused"), GHP_OK);
    CHECK_TEXT(ghp_choices_find(&choices, bias), "alone & fused");
    CHECK(ghp_choices_find(&choices, relu) == NULL);
    CHECK(ghp_choices_find(&choices, sums) == NULL);
    CHECK_TEXT(ghp_choices_find(&choices, forward), "again");
    more.n += 1000;
    CHECK(ghp_choices_find(&choices, other) == NULL);
    ghp_choices_release(&choices);
    CHECK(ghp_choices_find(&choices, forward) == NULL);
}

static void check_names(void)
{
    char text[GHP_CHOICE_NAME_BYTES];

    ghp_choice_text(text, "cudnn", 91900, "eng62 2=4,13=0");
    CHECK_TEXT(text, "cudnn 91900 eng62 2=4,13=0");
    CHECK_TEXT(ghp_choice_rest(text, "cudnn", 91900), "eng62 2=4,13=0");
    CHECK(ghp_choice_rest(text, "cudnn", 91901) == NULL);
    CHECK(ghp_choice_rest(text, "cudnn", 9190) == NULL);
    CHECK(ghp_choice_rest(text, "cublaslt", 91900) == NULL);
    CHECK(ghp_choice_rest("direct", "cudnn", 91900) == NULL);
    CHECK(ghp_choice_rest(NULL, "cudnn", 91900) == NULL);
    char *fused = NULL;
    snprintf(text, sizeof text, "eng62 2=4,13=0");
    ghp_choice_split(text, &fused);
    CHECK_TEXT(text, "eng62 2=4,13=0");
    CHECK(fused == NULL);
    snprintf(text, sizeof text, "eng62 2=4,13=0 & eng38 1=2");
    ghp_choice_split(text, &fused);
    CHECK_TEXT(text, "eng62 2=4,13=0");
    CHECK_TEXT(fused, "eng38 1=2");
}

/* Wherever the arena puts scratch, what was asked for fits from its first aligned address on. */
static void check_scratch(void)
{
    static const int64_t wanted[] = {1, 255, 256, 257, 100000};
    char *block = ghp_operand_set_block(1 << 20);

    CHECK_EQ(ghp_cuda_scratch(0), 0);
    for (size_t i = 0; i < sizeof wanted / sizeof wanted[0]; i++)
        for (int64_t offset = 0; offset < 4 * GHP_CUDA_ALIGN_BYTES; offset += GHP_ALIGN_BYTES) {
            char *first = ghp_cuda_aligned(block + offset);

            CHECK((uintptr_t)first % GHP_CUDA_ALIGN_BYTES == 0 && first >= block + offset);
            CHECK(first + wanted[i] <= block + offset + ghp_cuda_scratch(wanted[i]));
        }
    CHECK_EQ(ghp_cuda_round(0), 0);
    CHECK_EQ(ghp_cuda_round(257), 512);
    free(block);
}

/* Without a driver the backend says so, and what to do; with one it opens. */
static void check_remedy(void)
{
    struct ghp_backend_config config = {.element_bytes = 4, .threads = 1};
    struct ghp_backend *backend = NULL;

    if (ghp_backend_cuda.check() == GHP_OK) return;
    CHECK_MESSAGE("--backend onednn");
    CHECK_STATUS(ghp_backend_cuda.open(&config, &backend), GHP_ERR_BACKEND);
    CHECK_MESSAGE("--backend onednn");
    CHECK(backend == NULL);
    config.element_bytes = 8;
    CHECK_STATUS(ghp_backend_cuda.open(&config, &backend), GHP_ERR_INPUT);
    CHECK_MESSAGE("--backend reference");
}

/* A GPU without memory, and one that the build has no code for: each with its remedy. */
static void check_messages(void)
{
    CHECK_STATUS(ghp_cuda_status(cudaSuccess, "a call"), GHP_OK);
    CHECK_STATUS(ghp_cuda_status(cudaErrorMemoryAllocation, "a call"), GHP_ERR_NO_MEMORY);
    CHECK_MESSAGE("out of memory in 'a call'; use a smaller batch");
    CHECK_STATUS(ghp_cuda_status(cudaErrorNoKernelImageForDevice, "a call"), GHP_ERR_BACKEND);
    CHECK_MESSAGE("-DCMAKE_CUDA_ARCHITECTURES=native");
}

CHECK_TEST(cuda_choice)
{
    check_best();
    check_kept();
    check_names();
    check_scratch();
    check_remedy();
    check_messages();
    return check_end();
}
