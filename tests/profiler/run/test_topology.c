/* tests/profiler/run/test_topology.c - synthetic machines, XML files and bad descriptions; this machine. */
#include "profiler/run/topology.h"
#include "tests/check.h"

#include <unistd.h>

static void test_synthetic(void)
{
    struct ghp_machine machine = {0};

    CHECK_STATUS(ghp_topology_read("package:2 core:4 pu:2", 4, &machine), GHP_OK);
    CHECK_EQ(machine.nodes, 4);
    CHECK_EQ(machine.packages, 2);
    CHECK_EQ(machine.cores, 8);
    CHECK_EQ(machine.threads, 16);
    CHECK_EQ(machine.n_pus, 8);
    for (int i = 0; i < machine.n_pus; i++)
        CHECK_EQ(machine.pus[i], 2 * i);
    CHECK_EQ(machine.memory_bytes, GHP_TOPOLOGY_MEMORY_BYTES);
    CHECK(machine.name != NULL && machine.name[0] != '\0');
    ghp_machine_release(&machine);
}

/* Hardware threads numbered across cores first, as many machines do. */
static void test_interleaved(void)
{
    struct ghp_machine machine = {0};

    CHECK_STATUS(ghp_topology_read("package:1 core:4 pu:2(indexes=0,4,1,5,2,6,3,7)", 1, &machine),
                 GHP_OK);
    CHECK_EQ(machine.cores, 4);
    for (int i = 0; i < machine.n_pus; i++)
        CHECK_EQ(machine.pus[i], i);
    ghp_machine_release(&machine);
}

static void test_memory(void)
{
    struct ghp_machine machine = {0};

    CHECK_STATUS(ghp_topology_read("package:2 [numa(memory=1073741824)] core:2 pu:1", 1, &machine),
                 GHP_OK);
    CHECK_EQ(machine.memory_bytes, INT64_C(2) << 30);
    ghp_machine_release(&machine);
}

static void test_without_cores(void)
{
    struct ghp_machine machine = {0};

    CHECK_STATUS(ghp_topology_read("package:1 pu:3", 1, &machine), GHP_OK);
    CHECK_EQ(machine.cores, 3);
    CHECK_EQ(machine.threads, 3);
    ghp_machine_release(&machine);
}

static const char xml[] =
    "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
    "<!DOCTYPE topology SYSTEM \"hwloc2.dtd\">\n"
    "<topology version=\"2.0\">\n"
    "  <object type=\"Machine\" os_index=\"0\" cpuset=\"0x0000000f\" "
    "complete_cpuset=\"0x0000000f\" "
    "allowed_cpuset=\"0x0000000f\" nodeset=\"0x00000001\" complete_nodeset=\"0x00000001\" "
    "allowed_nodeset=\"0x00000001\" gp_index=\"1\">\n"
    "    <info name=\"CPUModel\" value=\"Round Number 9000\"/>\n"
    "    <object type=\"NUMANode\" os_index=\"0\" cpuset=\"0x0000000f\" "
    "complete_cpuset=\"0x0000000f\" "
    "nodeset=\"0x00000001\" complete_nodeset=\"0x00000001\" gp_index=\"9\" "
    "local_memory=\"8589934592\"/>\n"
    "    <object type=\"Core\" os_index=\"0\" cpuset=\"0x00000005\" complete_cpuset=\"0x00000005\" "
    "nodeset=\"0x00000001\" complete_nodeset=\"0x00000001\" gp_index=\"2\">\n"
    "      <object type=\"PU\" os_index=\"0\" cpuset=\"0x00000001\" complete_cpuset=\"0x00000001\" "
    "nodeset=\"0x00000001\" complete_nodeset=\"0x00000001\" gp_index=\"3\"/>\n"
    "      <object type=\"PU\" os_index=\"2\" cpuset=\"0x00000004\" complete_cpuset=\"0x00000004\" "
    "nodeset=\"0x00000001\" complete_nodeset=\"0x00000001\" gp_index=\"4\"/>\n"
    "    </object>\n"
    "    <object type=\"Core\" os_index=\"1\" cpuset=\"0x0000000a\" complete_cpuset=\"0x0000000a\" "
    "nodeset=\"0x00000001\" complete_nodeset=\"0x00000001\" gp_index=\"5\">\n"
    "      <object type=\"PU\" os_index=\"1\" cpuset=\"0x00000002\" complete_cpuset=\"0x00000002\" "
    "nodeset=\"0x00000001\" complete_nodeset=\"0x00000001\" gp_index=\"6\"/>\n"
    "      <object type=\"PU\" os_index=\"3\" cpuset=\"0x00000008\" complete_cpuset=\"0x00000008\" "
    "nodeset=\"0x00000001\" complete_nodeset=\"0x00000001\" gp_index=\"7\"/>\n"
    "    </object>\n"
    "  </object>\n"
    "</topology>\n";

static void write_text(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");

    CHECK(file != NULL);
    if (file == NULL) return;
    CHECK(fputs(text, file) >= 0);
    CHECK(fclose(file) == 0);
}

static void test_xml(void)
{
    char path[] = "/tmp/ghp-topology-XXXXXX";
    int fd = mkstemp(path);
    struct ghp_machine machine = {0};

    CHECK(fd >= 0);
    close(fd);
    write_text(path, xml);
    CHECK_STATUS(ghp_topology_read(path, 2, &machine), GHP_OK);
    CHECK_EQ(machine.nodes, 2);
    CHECK_EQ(machine.packages, 1);
    CHECK_EQ(machine.cores, 2);
    CHECK_EQ(machine.threads, 4);
    if (machine.n_pus == 2) {
        CHECK_EQ(machine.pus[0], 0);
        CHECK_EQ(machine.pus[1], 1);
    }
    CHECK_EQ(machine.memory_bytes, INT64_C(8589934592));
    CHECK_TEXT(machine.name, "Round Number 9000");
    ghp_machine_release(&machine);

    write_text(path, "this is no XML\n");
    CHECK_STATUS(ghp_topology_read(path, 1, &machine), GHP_ERR_IO);
    CHECK_MESSAGE("lstopo");
    unlink(path);
}

/* A node with two GPUs that NVLink joins, and a network card; then the same where only the bus is known. */
static void test_gpus(void)
{
    static const char source[] = GHP_SOURCE_DIR "/tests/profiler/run/gpus.xml";
    char path[] = "/tmp/ghp-gpus-XXXXXX", line[1024];
    struct ghp_machine machine = {0}, copy = {0};
    FILE *from = fopen(source, "r"), *to = fdopen(mkstemp(path), "w");

    CHECK_STATUS(ghp_topology_read(source, 2, &machine), GHP_OK);
    CHECK_EQ(machine.gpus.count, 2);
    CHECK_TEXT(machine.gpus.name, "NVIDIA H100 80GB HBM3");
    CHECK_EQ(machine.gpus.memory_bytes, INT64_C(83240960) * 1024);
    CHECK_NEAR(machine.gpus.pcie_Bps, 63.015385e9, 1e4);
    CHECK_NEAR(machine.gpus.nvlink_Bps, 450e9, 1);
    CHECK_STATUS(ghp_machine_copy(&machine, &copy), GHP_OK);
    CHECK_TEXT(copy.gpus.name, machine.gpus.name);
    ghp_machine_release(&copy);
    ghp_machine_release(&machine);

    while (from != NULL && to != NULL && fgets(line, sizeof line, from) != NULL) {
        char *cuda = strstr(line, "subtype=\"CUDA\""), *nvml = strstr(line, "subtype=\"NVML\"");

        if (cuda != NULL) memcpy(cuda, "subtype=\"XXXX\"", 14);
        if (nvml != NULL) memcpy(nvml, "subtype=\"XXXX\"", 14);
        fputs(line, to);
    }
    if (from != NULL) fclose(from);
    if (to != NULL) fclose(to);
    CHECK_STATUS(ghp_topology_read(path, 1, &machine), GHP_OK);
    CHECK_EQ(machine.gpus.count, 2);
    CHECK_TEXT(machine.gpus.name, "GH100 [H100 SXM5 80GB]");
    CHECK_EQ(machine.gpus.memory_bytes, 0);
    ghp_machine_release(&machine);
    unlink(path);
}

/* Two sockets of two GPUs and a network card each, and one for administration: two cards are near. With one socket's
 * alone, all GPUs take that. */
static void test_cards(void)
{
    static const char source[] = GHP_SOURCE_DIR "/tests/profiler/run/cards.xml";
    char path[] = "/tmp/ghp-cards-XXXXXX", line[1024];
    struct ghp_machine machine = {0};
    FILE *from = fopen(source, "r"), *to = fdopen(mkstemp(path), "w");

    CHECK_STATUS(ghp_topology_read(source, 2, &machine), GHP_OK);
    CHECK_EQ(machine.gpus.count, 4);
    CHECK_EQ(machine.gpus.cards, 2);
    ghp_machine_release(&machine);
    while (from != NULL && to != NULL && fgets(line, sizeof line, from) != NULL)
        if (strstr(line, "0000:92:00.0") == NULL) fputs(line, to);
    if (from != NULL) fclose(from);
    if (to != NULL) fclose(to);
    CHECK_STATUS(ghp_topology_read(path, 1, &machine), GHP_OK);
    CHECK_EQ(machine.gpus.cards, 1);
    ghp_machine_release(&machine);
    unlink(path);
}

static void test_bad(void)
{
    struct ghp_machine machine = {0};

    CHECK_STATUS(ghp_topology_read("/nonexistent/topology.xml", 1, &machine), GHP_ERR_INPUT);
    CHECK_MESSAGE("package:2 core:8 pu:2");
    CHECK_STATUS(ghp_topology_read("cores everywhere", 1, &machine), GHP_ERR_INPUT);
    CHECK_STATUS(ghp_topology_read("/tmp", 1, &machine), GHP_ERR_IO);
}

static void test_here(void)
{
    struct ghp_machine machine = {0};

    CHECK_STATUS(ghp_topology_read(NULL, 1, &machine), GHP_OK);
    CHECK(machine.cores >= 1);
    CHECK(machine.threads >= machine.cores);
    CHECK(machine.memory_bytes > INT64_C(1) << 20);
    CHECK_EQ(machine.n_pus, machine.cores);
    ghp_machine_release(&machine);
}

CHECK_TEST(topology)
{
    test_synthetic();
    test_interleaved();
    test_memory();
    test_without_cores();
    test_xml();
    test_gpus();
    test_cards();
    test_bad();
    test_here();
    return check_end();
}
