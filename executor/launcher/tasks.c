/* executor/launcher/tasks.c - see tasks.h. */
#include "executor/launcher/tasks.h"

#include "executor/launcher/tool_path.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* name, what one wants to do, a command, the page */
#define TASK_LIST(X)                                                                               \
    X("first-run", "see what ghp does, in ten minutes", "./demo", "docs/tutorial/1-first-run.md")  \
    X("network", "train your own network",                                                         \
      "ghp train net.onnx --workers 4 --batch 64 -- --data folder:images --epochs 10",             \
      "docs/tutorial/2-your-network.md")                                                           \
    X("machines", "train on several machines",                                                     \
      "ghp train net.onnx --workers 16 --batch 256 --mpirun 'mpirun --hostfile hosts'",            \
      "docs/tutorial/3-four-machines.md")                                                          \
    X("why", "understand why a plan is the fastest", "ghp inspect plan.json --explain",            \
      "docs/tutorial/4-why-this-plan.md")                                                          \
    X("lesson", "learn or teach distributed training", "examples/memory/run.sh",                   \
      "examples/README.md")                                                                        \
    X("install", "build and install", "cmake -G Ninja -S . -B build",                              \
      "docs/how-to/installation.md")                                                               \
    X("pytorch", "export a PyTorch module by hand", "ghp inspect net.onnx",                        \
      "docs/how-to/from-pytorch.md")                                                               \
    X("weights-back", "get a training's weights back into a PyTorch module",                       \
      "ghp inspect out/checkpoint.safetensors", "docs/how-to/weights-back.md")                     \
    X("fine-tune", "train a new head, some parameters or low-rank matrices",                       \
      "ghp plan net.onnx --profile profile.json --workers 4 --batch 64 --freeze '*' "              \
      "--freeze-except fc",                                                                        \
      "docs/how-to/fine-tuning.md")                                                                \
    X("torch-plan", "train in PyTorch by ghp's plan",                                              \
      "ghp inspect plan.json --export-torch plan.py", "docs/how-to/torch-plans.md")                \
    X("huggingface", "train a folder of Hugging Face's transformers (GPT-2, Llama)",               \
      "ghp train gpt2/ --workers 4 --batch 32 -- --data tokens:train.npy",                         \
      "docs/how-to/huggingface.md")                                                                \
    X("language-model", "train a transformer, also with tensor parallelism",                       \
      "ghp plan gpt2-124m@1024 --machine h100-sxm-8 --workers 8 --batch 64 --shard auto",          \
      "docs/how-to/transformers.md")                                                               \
    X("shard", "shard parameters that do not fit a worker's memory (OOM; ZeRO, FSDP)",             \
      "ghp plan net.onnx --profile profile.json --workers 4 --batch 64 --shard auto --memory "     \
      "4GiB",                                                                                      \
      "docs/reference/synchronisers.md")                                                           \
    X("pipeline", "divide a network into stages, and a batch into micro-batches",                  \
      "ghp plan net.onnx --profile profile.json --workers 4 --batch 64 --pipeline auto",           \
      "docs/explanation/stages.md")                                                                \
    X("data", "bring your data", "ghp run plan.json --data folder:images --dry-run",               \
      "docs/how-to/data.md")                                                                       \
    X("gpu", "train on GPUs", "mpirun -n 8 ghp run plan.json --backend cuda",                      \
      "docs/how-to/gpu.md")                                                                        \
    X("cluster", "use Slurm, MPICH or containers", "srun -n 16 ghp run plan.json",                 \
      "docs/how-to/clusters.md")                                                                   \
    X("admin", "look after a cluster for others",                                                  \
      "srun -N 2 --ntasks-per-node=1 ghp run --version", "docs/how-to/administration.md")          \
    X("resume", "continue a training from its checkpoint",                                         \
      "mpirun -n 4 ghp run plan.json --epochs 90 --checkpoint out --resume",                       \
      "docs/how-to/recovery.md")                                                                   \
    X("restart", "restart a training by itself, also with fewer workers",                          \
      "ghp launch plans.json --checkpoint out -- --epochs 90", "docs/how-to/restarts.md")          \
    X("fewer", "train on with fewer workers, or plan again on the way",                            \
      "ghp launch plans.json --checkpoint out --workers-left 'wc -l <hosts' -- --epochs 90",       \
      "docs/how-to/changing-machine.md")                                                           \
    X("slow", "do something about low bandwidth or a slow worker (straggler)",                     \
      "ghp plan net.onnx --profile profile.json --workers 4 --batch 64 --sync all",                \
      "docs/how-to/slow-links.md")                                                                 \
    X("sync", "train with a parameter server, by gossip or in other ways to synchronise",          \
      "ghp plan net.onnx --profile profile.json --workers 4 --batch 64 --sync bsp",                \
      "docs/reference/synchronisers.md")                                                           \
    X("large-batch", "train with a large batch",                                                   \
      "ghp plan net.onnx --profile profile.json --workers 4 --batch 4096 --lr-scaling lars",       \
      "docs/how-to/rates.md")                                                                      \
    X("speed", "know whether a training is as fast as it should be",                               \
      "ghp expect gpt2-124m --machine a100-sxm-40-8 --batch 128 --measured 190ms",                 \
      "docs/how-to/expect.md")                                                                     \
    X("what-if", "plan for a machine that you do not have",                                        \
      "ghp plan gpt2-124m@1024 --machine h100-sxm-8 --nodes 2 --workers 16 --batch 512",           \
      "docs/how-to/expect.md")                                                                     \
    X("evaluate", "know loss and accuracy of trained weights",                                     \
      "mpirun -n 2 ghp run plan.json --data npy:digits --evaluate --init "                         \
      "out/checkpoint.safetensors",                                                                \
      "docs/how-to/progress.md")                                                                   \
    X("accuracy", "see the accuracy while a training runs",                                        \
      "mpirun -n 2 ghp run plan.json --data npy:digits --epochs 30 --eval-every 100",              \
      "docs/how-to/progress.md")                                                                   \
    X("report", "look at a plan or a run as an HTML page",                                         \
      "ghp inspect plan.json --html plan.html", "docs/how-to/report.md")                           \
    X("verify", "check that a plan computes what one worker does",                                 \
      "mpirun -n 4 ghp run plan.json --verify 2", "docs/explanation/exactness.md")                 \
    X("lab", "try a cluster on one machine",                                                       \
      "bench/lab/run --hosts 4 --rate 1gbit -- ghp run plan.json", "docs/how-to/lab.md")           \
    X("python", "use ghp from Python", "pip install ./python", "docs/how-to/python.md")            \
    X("errors", "know what an error means", "", "docs/how-to/mistakes.md")                         \
    X("words", "know what a word means", "", "docs/reference/glossary.md")                         \
    X("limits", "know what is supported", "", "docs/reference/support.md")                         \
    X("all", "see every page", "", "docs/index.md")

#define NAME(name, purpose, command, page) name,
const char *const ghp_task_names[] = {TASK_LIST(NAME) NULL};
#undef NAME

static const struct {
    const char *name, *purpose, *command, *page;
} tasks[] = {
#define ROW(name, purpose, command, page) {name, purpose, command, page},
    TASK_LIST(ROW)
#undef ROW
};

enum { TASKS = sizeof tasks / sizeof tasks[0] };

/* In an installed ghp the page's own path: below PREFIX/share/doc/ghp, next to PREFIX/bin. */
static void print_page(const char *page)
{
    char path[GHP_TOOL_PATH_BYTES], *slash;
    size_t n = 0;

    ghp_tool_path("ghp", path);
    for (int up = 0; up < 2; up++) {
        slash = strrchr(path, '/');
        n = slash != NULL ? (size_t)(slash - path) : 0;
        path[n] = '\0';
    }
    snprintf(path + n, sizeof path - n, "/share/doc/ghp/%s", page);
    if (access(path, R_OK) == 0)
        printf("Page: %s\n", path);
    else
        printf("Page: %s\n", page);
}

bool ghp_tasks_about(const char *word)
{
    bool found = false;
    char spaced[64]; /* "parameter server" of parameter-server */

    snprintf(spaced, sizeof spaced, "%s", word);
    for (char *at = spaced; (at = strchr(at, '-')) != NULL;)
        *at = ' ';
    for (int i = 0; i < TASKS; i++) {
        if (strcasestr(tasks[i].purpose, word) == NULL &&
            strcasestr(tasks[i].purpose, spaced) == NULL)
            continue;
        printf("  %-15s %s\n", tasks[i].name, tasks[i].purpose);
        found = true;
    }
    return found;
}

bool ghp_task_print(const char *name)
{
    for (int i = 0; i < TASKS; i++) {
        if (strcmp(tasks[i].name, name) != 0) continue;
        printf("To %s:\n\n", tasks[i].purpose);
        if (tasks[i].command[0] != '\0') printf("    %s\n\n", tasks[i].command);
        print_page(tasks[i].page);
        return true;
    }
    return false;
}
