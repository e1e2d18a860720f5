/* tests/planner/make/test_shard_groups.c - with fast links in a node and slow ones between, `--shard auto` shards
 * within nodes if that fits the memory, says so, and is faster than over all workers; where no node has two workers, a
 * group is given, or memory leaves only all workers, it does not. */
#include "planner/make/shard_groups.h"

#include "core/cost/named_machine.h"
#include "core/cost/profile_peak.h"
#include "planner/make/sync_choice.h"
#include "tests/check.h"

#include <string.h>

static const unsigned all_shardings = (1u << GHP_SHARDING_COUNT) - 1;

/* Two nodes of eight GPUs, 1 Gbit/s between them. */
static struct ghp_profile two_nodes(void)
{
    struct ghp_machine machine = {0};
    struct ghp_profile profile = {0};

    CHECK_STATUS(ghp_machine_open("h100-sxm-8", &machine), GHP_OK);
    machine.nodes = 2;
    machine.inter = (struct ghp_link){.bandwidth_Bps = 1.25e8, .latency_s = 2e-5};
    CHECK_STATUS(ghp_profile_peak(&machine, 16, ghp_precision_of(0), &profile), GHP_OK);
    ghp_machine_release(&machine);
    return profile;
}

static struct ghp_plan_request request_of(const struct ghp_profile *profile)
{
    return (struct ghp_plan_request){.model_path = GHP_SOURCE_DIR "/models/gpt-micro.json",
                                     .profile_path = "h100-sxm-8",
                                     .profile = profile,
                                     .problem = {16, 64},
                                     .strategy = GHP_STRATEGY_DATA,
                                     .shardings = all_shardings,
                                     .recompute = GHP_RECOMPUTE_MODE_NEVER,
                                     .time_limit_s = 20,
                                     .simplify = true,
                                     .decision_only = true};
}

/* Without a limit; with all parameters sharded over all workers; and in all groups of eight. */
static void test_choice(const struct ghp_profile *profile)
{
    struct ghp_plan_request request = request_of(profile);
    struct ghp_plan all = {0}, within = {0}, chosen = {0};

    request.shardings = 1u << GHP_SHARDING_PASS; /* no choice is left, so no groups are tried */
    CHECK(!ghp_shard_groups_open(&request));
    CHECK_STATUS(ghp_plan_make_synced(&request, &all), GHP_OK);
    request.method.shard_within = 8;
    CHECK_STATUS(ghp_plan_make_synced(&request, &within), GHP_OK);
    request = request_of(profile);
    CHECK(ghp_shard_groups_open(&request));
    request.memory_bytes = within.predicted.peak_bytes;
    if (CHECK_STATUS(ghp_plan_make_synced(&request, &chosen), GHP_OK)) {
        CHECK_EQ(chosen.method.shard_within, 8);
        CHECK(chosen.predicted.peak_bytes <= request.memory_bytes);
        CHECK(chosen.predicted.step_s < 0.9 * all.predicted.step_s);
        CHECK(chosen.certificate.sync != NULL &&
              strstr(chosen.certificate.sync, "within groups of 8 workers") != NULL);
        CHECK_STATUS(ghp_plan_verify(&chosen, profile), GHP_OK);
        ghp_plan_release(&chosen);
    }
    request.memory_bytes = (all.predicted.peak_bytes + within.predicted.peak_bytes) / 2;
    if (CHECK_STATUS(ghp_plan_make_synced(&request, &chosen), GHP_OK)) {
        CHECK(chosen.predicted.peak_bytes <= request.memory_bytes);
        CHECK_EQ(chosen.method.shard_within, 0);
        CHECK(chosen.certificate.sync == NULL);
        ghp_plan_release(&chosen);
    }
    ghp_plan_release(&all);
    ghp_plan_release(&within);
}

static void test_open(struct ghp_profile *profile)
{
    struct ghp_plan_request request = request_of(profile);

    request.method.shard_within = 4;
    CHECK(!ghp_shard_groups_open(&request));
    request = request_of(profile);
    request.stages = "2,fc1:2";
    CHECK(!ghp_shard_groups_open(&request));
    profile->machine.nodes = 16;
    request = request_of(profile);
    CHECK(!ghp_shard_groups_open(&request));
    profile->machine.nodes = 1;
    CHECK(!ghp_shard_groups_open(&request));
}

CHECK_TEST(shard_groups)
{
    struct ghp_profile profile = two_nodes();

    test_choice(&profile);
    test_open(&profile);
    ghp_profile_release(&profile);
    return check_end();
}
