/* tests/executor/backend/cpu/test_pool.c - the CPU kernels of max pools, divided among threads: each writes
 * what is its own alone, so in falling order they give the whole, bit by bit. */
#include "tests/executor/op_case.h"
#include "tests/check.h"

#include "executor/backend/cpu/kernels_cpu.h"

static void must_init(struct ghp_operand_set *set, const struct ghp_local *local)
{
    if (!CHECK_STATUS(ghp_operand_set_init(local, 4, GHP_OPERAND_SET_ALL, set), GHP_OK)) exit(1);
}

static void run_parts(struct ghp_operand_set *set, enum ghp_pass pass, int parts)
{
    const struct ghp_cpu_kernel *cpu_kernel = ghp_cpu_kernel_find(set->local.op, pass);
    set->args.at.scratch = ghp_operand_set_block(cpu_kernel->scratch_bytes(&set->local, parts, 4));
    for (int part = parts; part-- > 0;)
        cpu_kernel->stages[GHP_PRECISION_FLOAT].run(&set->local, &set->args,
                                                    (struct ghp_part){part, parts});
    free(set->args.at.scratch);
}

static void check_parts(const struct ghp_local *local)
{
    struct ghp_operand_set whole, parted;
    must_init(&whole, local);
    must_init(&parted, local);
    for (int pass = GHP_PASS_FORWARD; pass <= GHP_PASS_BACKWARD_DATA; pass++) {
        run_parts(&whole, (enum ghp_pass)pass, 1);
        run_parts(&parted, (enum ghp_pass)pass, 5);
    }
    CHECK(memcmp(whole.args.at.y, parted.args.at.y, (size_t)(ghp_local_out_elements(local) * 4)) ==
          0);
    CHECK(memcmp(whole.args.at.dx[0], parted.args.at.dx[0],
                 (size_t)(ghp_local_in_elements(local) * 4)) == 0);
    ghp_operand_set_release(&whole);
    ghp_operand_set_release(&parted);
}

CHECK_TEST(pool)
{
    int n;
    const struct ghp_local *cases = op_case_all(&n);

    for (int i = 0; i < n; i++)
        if (cases[i].op == GHP_OP_MAX_POOL) check_parts(&cases[i]);
    return check_end();
}
