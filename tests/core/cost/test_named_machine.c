/* tests/core/cost/test_named_machine.c - the machines and networks that have a name: that they read, that each figure
 * has a source, and what is planned by of their peaks. */
#include "core/cost/named_machine.h"
#include "core/cost/profile_peak.h"
#include "tests/check.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static void check_sources(const struct ghp_machine *m)
{
    const char *const figures[] = {"node", "peak", "intra.bandwidth_Bps", "intra.latency_s",
                                   "inter"};

    for (size_t i = 0; i < sizeof figures / sizeof figures[0]; i++)
        CHECK(json_object_get(m->sources, figures[i]) != NULL);
    CHECK(m->gpus.count == 0 || json_object_get(m->sources, "gpus") != NULL);
}

/* Every named machine reads, says its sources, survives a copy, and a plan can be made for all that it has. */
static void test_machines(void)
{
    const struct ghp_precision numbers = ghp_precision_of(0); /* float */

    for (int i = 0; ghp_machine_names[i] != NULL; i++) {
        struct ghp_machine m = {0}, copy = {0};
        struct ghp_profile profile = {0};
        uint64_t a = 0, b = 1;

        if (!CHECK_STATUS(ghp_machine_open(ghp_machine_names[i], &m), GHP_OK)) continue;
        check_sources(&m);
        CHECK(m.peak.memory_Bps > 0);
        CHECK(m.intra.bandwidth_Bps > 0);
        /* a precision of shorter numbers is not slower */
        CHECK(m.peak.flops_per_s[3] >= m.peak.flops_per_s[2] || !(m.peak.flops_per_s[3] > 0));
        CHECK(m.peak.flops_per_s[1] <= m.peak.flops_per_s[0]);
        CHECK_STATUS(ghp_machine_copy(&m, &copy), GHP_OK);
        CHECK_STATUS(ghp_machine_hash(&m, &a), GHP_OK);
        CHECK_STATUS(ghp_machine_hash(&copy, &b), GHP_OK);
        CHECK(a == b);
        CHECK_STATUS(ghp_profile_peak(&m, m.gpus.count > 0 ? m.gpus.count : 4, numbers, &profile),
                     GHP_OK);
        CHECK(profile.n_ops == 0);
        CHECK(profile.copy.source == GHP_SOURCE_ANALYTIC);
        CHECK(ghp_profile_is_peak(&profile));
        ghp_profile_release(&profile);
        ghp_machine_release(&copy);
        ghp_machine_release(&m);
    }
}

static void test_networks(void)
{
    /* none of bits */
    static const char *const others[] = {"10GB/s",  "Gbit/s", "-1Gbit/s",
                                         "0Mbit/s", "10",     "nanGbps"};
    struct ghp_link link;

    for (int i = 0; ghp_fabric_names[i] != NULL; i++) {
        if (!CHECK_STATUS(ghp_fabric_open(ghp_fabric_names[i], &link), GHP_OK)) continue;
        CHECK(link.bandwidth_Bps > 0 && link.latency_s > 0);
    }
    CHECK_STATUS(ghp_fabric_open("ib-400x8", &link), GHP_OK);
    CHECK_NEAR(link.bandwidth_Bps, 400e9, 0); /* 8 x 400 Gbit/s */
    CHECK_STATUS(ghp_fabric_open("ib-400x9", &link), GHP_ERR_USAGE);
    CHECK_MESSAGE("did you mean 'ib-400x");
    /* rates of no name, with the latency of the Ethernet next to them */
    CHECK_STATUS(ghp_fabric_open("100 Mbit/s", &link), GHP_OK);
    CHECK_NEAR(link.bandwidth_Bps, 12.5e6, 0);
    CHECK_NEAR(link.latency_s, 5e-5, 0);
    CHECK_STATUS(ghp_fabric_open("12.5Gbps", &link), GHP_OK);
    CHECK_NEAR(link.bandwidth_Bps, 12.5e9 / 8, 0);
    CHECK_NEAR(link.latency_s, 2.5e-5, 0);
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        CHECK_STATUS(ghp_fabric_open(others[i], &link), GHP_ERR_USAGE);
        CHECK_MESSAGE("a rate such as 2.5Gbit/s");
    }
}

static void test_peak(void)
{
    struct ghp_machine m = {0};
    struct ghp_profile p = {0};

    CHECK_STATUS(ghp_machine_open("h100-sxm-8", &m), GHP_OK);
    CHECK_STATUS(ghp_profile_peak(&m, 9, ghp_precision_of(3), &p), GHP_ERR_INPUT);
    CHECK_MESSAGE("give --nodes 2 or more");
    CHECK_EQ(ghp_peak_nodes(&m, 9), 2);
    m.nodes = 2;
    CHECK_STATUS(ghp_profile_peak(&m, 9, ghp_precision_of(3), &p), GHP_OK);
    CHECK_NEAR(p.analytic.flops_per_s, 989.5e12 / 2, 1);
    CHECK_NEAR(p.machine.inter.bandwidth_Bps, 320e9, 1);
    CHECK_EQ(ghp_profile_device_limit(&p, 9), 80000000000);
    ghp_profile_release(&p);
    ghp_machine_release(&m);
    CHECK_STATUS(ghp_machine_open("v100-sxm-16-8", &m), GHP_OK);
    CHECK_STATUS(ghp_profile_peak(&m, 8, ghp_precision_of(3), &p), GHP_ERR_INPUT);
    CHECK_MESSAGE("does not compute in bf16; give --precision one of: float, double");
    ghp_peak_take_fp16(&m.peak);
    CHECK_STATUS(ghp_profile_peak(&m, 8, ghp_precision_of(3), &p), GHP_OK);
    CHECK_NEAR(p.analytic.flops_per_s, 125e12 / 2, 1);
    ghp_profile_release(&p);
    ghp_machine_release(&m);
    /* a node without GPUs is its workers' in equal parts */
    CHECK_STATUS(ghp_machine_open("xeon-8180-2", &m), GHP_OK);
    CHECK_STATUS(ghp_profile_peak(&m, 4, ghp_precision_of(0), &p), GHP_OK);
    CHECK_NEAR(p.analytic.flops_per_s, 6.093e12 / 2 / 4, 1);
    ghp_profile_release(&p);
    m.nodes = 4;
    CHECK_STATUS(ghp_profile_peak(&m, 4, ghp_precision_of(0), &p), GHP_ERR_INPUT);
    CHECK_MESSAGE("no network between its 4 nodes");
    memset(&m.peak, 0, sizeof m.peak);
    CHECK_STATUS(ghp_profile_peak(&m, 4, ghp_precision_of(0), &p), GHP_ERR_INPUT);
    CHECK_MESSAGE("no peak figures");
    ghp_machine_release(&m);
    CHECK_STATUS(ghp_machine_open("h100-smx-8", &m), GHP_ERR_USAGE);
    CHECK_MESSAGE("did you mean 'h100-sxm-8'");
}

/* Seconds of 1 GiB summed up over the groups of a kind on one node of 8 V100, without latency. */
static double mesh_s(const struct ghp_machine *m, int count, int stride)
{
    return ghp_machine_comm_s(m, GHP_COMM_ALL_REDUCE, 1 << 30,
                              (struct ghp_ranks){.count = count, .stride = stride}, 8);
}

/* Groups of a mesh have the NVLinks between their members: DGX-1's pairs have 1 of 6 or 2, its quads 4. */
static void test_mesh(void)
{
    static const struct {
        unsigned members;
        double fraction;
    } groups[] = {{0x03, 1 / 6.0}, {0x0c, 2 / 6.0}, {0x0f, 4 / 6.0},     {0xff, 1},
                  {0x55, 2 / 6.0}, {0x11, 2 / 6.0}, {0x81, 16e9 / 150e9}};
    const char *path = "mesh.json";
    struct ghp_machine m = {0}, again = {0};
    uint64_t a = 0, b = 1;

    CHECK_STATUS(ghp_machine_open("v100-sxm-16-8", &m), GHP_OK);
    for (size_t i = 0; i < sizeof groups / sizeof groups[0]; i++)
        CHECK_NEAR(ghp_gpus_fraction(&m.gpus, groups[i].members), groups[i].fraction, 1e-12);
    CHECK_STATUS(ghp_machine_save(path, &m), GHP_OK);
    CHECK_STATUS(ghp_machine_load(path, &again), GHP_OK);
    CHECK_STATUS(ghp_machine_hash(&m, &a), GHP_OK);
    CHECK_STATUS(ghp_machine_hash(&again, &b), GHP_OK);
    CHECK(a == b && memcmp(m.gpus.nvlinks, again.gpus.nvlinks, sizeof m.gpus.nvlinks) == 0);
    again.gpus.nvlinks[2][5] = 1;
    CHECK_STATUS(ghp_machine_save(path, &again), GHP_OK);
    ghp_machine_release(&again);
    CHECK_STATUS(ghp_machine_load(path, &again), GHP_ERR_INPUT);
    CHECK_MESSAGE("give the same whole number both ways");
    remove(path);
    m.intra.latency_s = 0;
    CHECK_NEAR(mesh_s(&m, 8, 1), 1.75 * (1 << 30) / 150e9, 1e-9);
    CHECK_NEAR(mesh_s(&m, 4, 1), 1.5 * (1 << 30) / 100e9, 1e-9);
    CHECK_NEAR(mesh_s(&m, 2, 1), 1.0 * (1 << 30) / 25e9, 1e-9);
    CHECK_NEAR(mesh_s(&m, 4, 2), 1.5 * (1 << 30) / 50e9, 1e-9);
    CHECK_NEAR(mesh_s(&m, 2, 4), 1.0 * (1 << 30) / 25e9, 1e-9);
    ghp_machine_release(&m);
}

/* A ring's hops inside nodes have the inner link's latency. */
static void test_hops(void)
{
    struct ghp_machine m = {0};
    double alone_s;

    CHECK_STATUS(ghp_machine_open("h100-sxm-8", &m), GHP_OK);
    m.nodes = 4;
    alone_s = 31 * 1e3 / 32 / fmin(m.inter.bandwidth_Bps, m.intra.bandwidth_Bps);
    CHECK_NEAR(ghp_machine_comm_s(&m, GHP_COMM_ALL_GATHER, 1000,
                                  (struct ghp_ranks){.count = 32, .stride = 1}, 32),
               alone_s + 28 * m.intra.latency_s + 3 * m.inter.latency_s, 1e-12);
    ghp_machine_release(&m);
}

/* Bus bandwidths of all-reduces between 2 to 8 H100 whose rings reach 370 GB/s: the switch adds from five GPUs on
 * (NVIDIA/nccl, issue 1455, 2024). */
static void test_switch(void)
{
    static const double measured_GBps[] = {370, 370, 370, 420, 440, 460, 480};
    const int64_t bytes = INT64_C(4) << 30;
    struct ghp_machine m = {0}, again = {0};

    CHECK_STATUS(ghp_machine_open("h100-sxm-8", &m), GHP_OK);
    CHECK_STATUS(ghp_machine_save("switch.json", &m), GHP_OK);
    CHECK_STATUS(ghp_machine_load("switch.json", &again), GHP_OK);
    CHECK_NEAR(again.gpus.nvls, m.gpus.nvls, 0);
    CHECK_EQ(again.gpus.cards, 8);
    ghp_machine_release(&again);
    remove("switch.json");
    m.intra.bandwidth_Bps = 370e9;
    for (int p = 2; p <= 8; p++) {
        double s = ghp_machine_comm_s(&m, GHP_COMM_ALL_REDUCE, bytes,
                                      (struct ghp_ranks){.count = p, .stride = 1}, p);

        CHECK_NEAR(2 * (p - 1.0) / p * (double)bytes / s * 1e-9, measured_GBps[p - 2],
                   0.03 * measured_GBps[p - 2]);
    }
    ghp_machine_release(&m);
}

/* Few workers of a node reach the cards near their GPUs. */
static void test_cards(void)
{
    struct ghp_machine m = {0};

    CHECK_STATUS(ghp_machine_open("v100-sxm-16-8", &m), GHP_OK);
    m.nodes = 2;
    CHECK_NEAR(ghp_machine_inter(&m, 16).bandwidth_Bps, 50e9, 1);
    CHECK_NEAR(ghp_machine_inter(&m, 6).bandwidth_Bps, 25e9, 1);
    CHECK_NEAR(ghp_machine_comm_s(&m, GHP_COMM_ALL_GATHER, 1 << 30,
                                  (struct ghp_ranks){.count = 2, .stride = 1}, 2),
               0.5 * (1 << 30) / 12.5e9 + m.inter.latency_s, 1e-9);
    ghp_machine_release(&m);
}

CHECK_TEST(named_machine)
{
    test_mesh();
    test_switch();
    test_cards();
    test_hops();
    test_machines();
    test_networks();
    test_peak();
    return check_end();
}
