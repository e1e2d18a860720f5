// tests/emulated/grid.cpp - see grid.hpp.
#include "tests/emulated/grid.hpp"

#include <cstdio>
#include <cstdlib>
#include <csetjmp>
#include <memory>
#include <ucontext.h>
#include <vector>

thread_local uint3 threadIdx, blockIdx;
thread_local dim3 blockDim, gridDim;

namespace
{

constexpr size_t kStack = 64 * 1024;
constexpr unsigned kMostThreads = 1024, kMostShared = 48 * 1024;

struct barrier {
    unsigned arrived = 0, generation = 0;
};

struct fiber {
    ucontext_t first; // until it has run once; then `place`, which costs no call of the system
    jmp_buf place;
    bool begun = false;
    std::unique_ptr<char[]> stack;
    unsigned thread = 0; // of the block
    uint3 index = {0, 0, 0};
    barrier *waits = nullptr;
    unsigned generation = 0; // at which it began to wait
    bool busy = false;       // has a thread
};

[[noreturn]] void die(const char *what)
{
    std::fprintf(stderr, "emulated GPU: %s\n", what);
    std::abort();
}

// One block's threads: fibers take threads until all have run; one that waits keeps its thread.
struct walker {
    ucontext_t first_numa;
    jmp_buf home;
    std::vector<std::unique_ptr<fiber>> fibers;
    fiber *running = nullptr;
    const std::function<void()> *body = nullptr;
    unsigned threads = 0, next = 0, finished = 0;
    barrier whole, warps[kMostThreads / 32];
    uint64_t slots[kMostThreads];
    alignas(64) char shared[kMostShared];

    void wait(barrier &b, unsigned n);
    void run_block();
    void live();

  private:
    void leave();
    void resume(fiber &f);
    fiber &idle();
};

thread_local std::unique_ptr<walker> the_walker;

walker &here()
{
    if (!the_walker) the_walker = std::make_unique<walker>();
    return *the_walker;
}

void enter_fiber()
{
    here().live();
}

void walker::live()
{
    for (;;) {
        fiber &me = *running;

        while (next < threads) {
            unsigned t = next++;

            me.busy = true;
            me.thread = t;
            me.index = {t % blockDim.x, t / blockDim.x % blockDim.y, t / blockDim.x / blockDim.y};
            threadIdx = me.index;
            (*body)();
            me.busy = false;
            finished++;
        }
        leave(); // until the next block
    }
}

// From a fiber back to who resumed it.
void walker::leave()
{
    if (_setjmp(running->place) == 0) _longjmp(home, 1);
}

void walker::resume(fiber &f)
{
    running = &f;
    threadIdx = f.index;
    if (_setjmp(home) == 0) {
        if (f.begun) _longjmp(f.place, 1);
        f.begun = true;
        swapcontext(&first_numa, &f.first);
    }
    running = nullptr;
}

fiber &walker::idle()
{
    for (auto &f : fibers)
        if (!f->busy) return *f;
    fibers.push_back(std::make_unique<fiber>());
    fiber &made = *fibers.back();
    made.stack = std::make_unique<char[]>(kStack);
    getcontext(&made.first);
    made.first.uc_stack.ss_sp = made.stack.get();
    made.first.uc_stack.ss_size = kStack;
    made.first.uc_link = nullptr;
    makecontext(&made.first, enter_fiber, 0);
    return made;
}

void walker::wait(barrier &b, unsigned n)
{
    fiber &me = *running;

    me.generation = b.generation;
    if (++b.arrived == n) {
        b.arrived = 0;
        b.generation++;
        return;
    }
    me.waits = &b;
    leave();
    me.waits = nullptr;
}

void walker::run_block()
{
    next = finished = 0;
    whole = barrier();
    for (auto &w : warps)
        w = barrier();
    while (finished < threads) {
        bool moved = false;

        while (next < threads) {
            resume(idle());
            moved = true;
        }
        for (size_t i = 0; i < fibers.size(); i++) {
            fiber &f = *fibers[i];

            if (!f.busy || f.waits == nullptr || f.waits->generation == f.generation) continue;
            resume(f);
            moved = true;
        }
        if (!moved) die("threads of a block wait at different barriers, or some have ended");
    }
}

} // namespace

void emulated_grid(dim3 blocks, dim3 threads, size_t shared, const std::function<void()> &thread)
{
    walker &w = here();

    if (threads.x * threads.y * threads.z > kMostThreads || threads.x * threads.y * threads.z == 0)
        die("a block of no threads, or of more than 1024");
    if (blocks.x == 0 || blocks.y == 0 || blocks.z == 0 || blocks.x > 0x7fffffffu ||
        blocks.y > 65535 || blocks.z > 65535)
        die("a grid of no blocks, or of too many");
    if (shared > kMostShared) die("more than 48 KiB of shared memory");
    if (w.running != nullptr) die("a kernel started from a kernel");
    gridDim = blocks;
    blockDim = threads;
    w.threads = threads.x * threads.y * threads.z;
    w.body = &thread;
    for (unsigned z = 0; z < blocks.z; z++)
        for (unsigned y = 0; y < blocks.y; y++)
            for (unsigned x = 0; x < blocks.x; x++) {
                blockIdx = {x, y, z};
                std::memset(w.shared, 0xcb, shared);
                w.run_block();
            }
}

void *emulated_shared()
{
    return here().shared;
}

void emulated_barrier()
{
    walker &w = here();

    w.wait(w.whole, w.threads);
}

// Threads in the running thread's warp; the last warp may be smaller.
unsigned threads_of_warp(const walker &w, unsigned warp)
{
    unsigned left = w.threads - warp * 32;

    return left < 32 ? left : 32;
}

void emulated_warp_barrier()
{
    walker &w = here();
    unsigned warp = w.running->thread / 32;

    w.wait(w.warps[warp], threads_of_warp(w, warp));
}

uint64_t emulated_shuffle(uint64_t value, int offset, bool crosswise)
{
    walker &w = here();
    unsigned me = w.running->thread, warp = me / 32, first = warp * 32;
    unsigned n = threads_of_warp(w, warp), lane = me - first;
    unsigned other = crosswise ? lane ^ (unsigned)offset : lane + (unsigned)offset;
    uint64_t taken;

    w.slots[me] = value;
    w.wait(w.warps[warp], n);
    taken = other < n ? w.slots[first + other] : value;
    w.wait(w.warps[warp], n);
    return taken;
}
