// tests/emulated/nccl.cpp - as much of NCCL as ghp uses, between processes of one machine, on an emulated GPU.
//
// Built as a library of NCCL's name, which ghp opens like the real one. Ranks meet in shared memory that the unique
// identity names; a collective goes through it in pieces when its stream comes to it (GHP_EMULATED=eager: at once).
// Sums have the bits of sums over MPI, which real NCCL's have of two ranks alone. As in NCCL, making a communicator, its
// first collective and ending it make the host wait for all its ranks, and the first message to or from a rank for that
// one. A send ends when all of it was received.
// GHP_EMULATED_NCCL=error: the next collective ends in a remote error, which shows when it is asked about.
// GHP_EMULATED_NCCL=start:R, first:R or end:R: rank R never comes to make its communicators, to its first collective or
// to their end. exchange:R: an exchange of rank R's ends in a remote error, after some that did not. register: rank 0
// registers no memory. register:R: rank R never comes to do it.
// GHP_EMULATED_TELL: stderr gets a line for each communicator of fewer blocks, and what becomes of NCCL's memory.
// EMULATED_NCCL_MINOR: the version 2.x; memory came with 2.19, windows with 2.27.
#include "tests/emulated/launch.hpp"

extern "C" {
#include "executor/transport/summands.h"
}

#include <algorithm>
#include <atomic>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <fcntl.h>
#include <map>
#include <nccl.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>
#include <vector>

#ifndef EMULATED_NCCL_MINOR
#define EMULATED_NCCL_MINOR 27
#endif
#ifndef NCCL_WIN_COLL_SYMMETRIC // an older header
typedef void *ncclWindow_t;
#endif

namespace
{

constexpr size_t kPiece = 64 * 1024; // of one rank for one other
constexpr size_t kPage = 4096;       // to which memory that is registered is aligned

struct meeting { // in shared memory; zeroed at first
    std::atomic<int> arrived, generation, present;
};

struct box {                          // what one rank sends another, a piece at a time
    std::atomic<int> sends, receives; // that side has come
    std::atomic<int> full;
    size_t bytes, now; // of the message, of the piece
    char piece[kPiece];
};

struct transfer { // of a group
    bool sends;
    void *at;
    size_t bytes;
    int peer;
    size_t done = 0;
    bool taken = false; // all that was sent
};

} // namespace

struct ncclComm {
    int rank, size;
    meeting *shared;
    char *pieces; // [size][size][kPiece]: from, for
    box *boxes;   // [size][size]
    size_t bytes;
    std::atomic<ncclResult_t> error;
    std::atomic<bool> aborted;
    bool met; // at its first collective
    std::vector<transfer> transfers;
};

namespace
{

std::map<void *, void *> memory; // that was allocated: its address, and CUDA's
struct registration {
    ncclComm *comm;
    void *memory;
};
std::vector<registration *> registrations;

int depth; // of groups
std::vector<std::pair<ncclComm *, cudaStream_t>> grouped;

void pause_process()
{
    timespec some = {0, 20000};

    nanosleep(&some, nullptr);
}

// host: it is the host that waits.
void meet(ncclComm *c, bool host = false)
{
    int generation = c->shared->generation.load();

    if (c->shared->arrived.fetch_add(1) + 1 == c->size) {
        c->shared->arrived.store(0);
        c->shared->generation.fetch_add(1);
        return;
    }
    while (c->shared->generation.load() == generation && !c->aborted) {
        if (host) emulated_progress();
        pause_process();
    }
}

char *piece(ncclComm *c, int from, int to)
{
    return c->pieces + ((size_t)from * (size_t)c->size + (size_t)to) * kPiece;
}

size_t size_of(ncclDataType_t type)
{
    return type == ncclInt8 ? 1 : type == ncclBfloat16 ? 2 : type == ncclFloat32 ? 4 : 8;
}

// out = sum over ranks of their `in`, `bytes` of it at a time.
void sum_pieces(ncclComm *c, const char *in, char *out, size_t bytes, ncclDataType_t type)
{
    int64_t size = (int64_t)size_of(type);

    for (size_t done = 0; done < bytes; done += kPiece) {
        size_t now = bytes - done < kPiece ? bytes - done : kPiece;
        const struct ghp_summands all = {c->size,
                                         -1,
                                         (int64_t)now / size,
                                         c->size * (int64_t)kPiece / size,
                                         nullptr,
                                         c->pieces};

        std::memcpy(piece(c, c->rank, 0), in + done, now);
        meet(c);
        if (c->size > 1)
            ghp_summands_add(&all, (int)size, out + done);
        else
            std::memcpy(out + done, c->pieces, now);
        meet(c);
    }
}

void gather_pieces(ncclComm *c, const char *mine, char *all, size_t bytes)
{
    for (size_t done = 0; done < bytes; done += kPiece) {
        size_t now = bytes - done < kPiece ? bytes - done : kPiece;

        std::memcpy(piece(c, c->rank, 0), mine + done, now);
        meet(c);
        for (int r = 0; r < c->size; r++)
            std::memcpy(all + (size_t)r * bytes + done, piece(c, r, 0), now);
        meet(c);
    }
}

box &box_of(ncclComm *c, const transfer &t)
{
    int from = t.sends ? c->rank : t.peer, to = t.sends ? t.peer : c->rank;

    return c->boxes[from * c->size + to];
}

// The host waits for the other sides that it meets for the first time.
void connect(ncclComm *c)
{
    for (auto &t : c->transfers)
        (t.sends ? box_of(c, t).sends : box_of(c, t).receives) = 1;
    for (auto &t : c->transfers)
        while ((t.sends ? box_of(c, t).receives : box_of(c, t).sends) == 0) {
            emulated_progress();
            pause_process();
        }
}

// Sends or receives a piece, if the other side lets it.
bool step(ncclComm *c, transfer &t)
{
    box &b = box_of(c, t);

    if (b.full == t.sends) return false;
    if (t.sends) {
        b.bytes = t.bytes;
        b.now = t.bytes - t.done < kPiece ? t.bytes - t.done : kPiece;
        std::memcpy(b.piece, (char *)t.at + t.done, b.now);
    } else {
        if (b.bytes != t.bytes) {
            std::fprintf(stderr, "emulated NCCL: rank %d sends %zu bytes where rank %d takes %zu\n",
                         t.peer, b.bytes, c->rank, t.bytes);
            std::abort();
        }
        std::memcpy((char *)t.at + t.done, b.piece, b.now);
    }
    t.done += b.now;
    b.full = t.sends;
    return true;
}

// All continue at the same time, but those of one pair and direction one after the other.
void exchange(ncclComm *c, std::vector<transfer> transfers)
{
    for (bool over = false; !over && !c->aborted;) {
        std::vector<std::pair<box *, bool>> busy;
        bool moved = false;

        over = true;
        for (auto &t : transfers) {
            std::pair<box *, bool> side(&box_of(c, t), t.sends);

            if (t.sends ? t.taken : t.done == t.bytes) continue;
            over = false;
            if (std::find(busy.begin(), busy.end(), side) != busy.end()) continue;
            busy.push_back(side);
            if (t.done < t.bytes)
                moved = step(c, t) || moved;
            else
                moved = t.taken = side.first->full == 0;
        }
        if (!over && !moved) pause_process();
    }
}

// Whether the rank is the one that never comes; it stays here.
void hang_if(const char *where, int rank)
{
    const char *fault = std::getenv("GHP_EMULATED_NCCL");
    size_t n = std::strlen(where);

    if (fault == nullptr || std::strncmp(fault, where, n) != 0 || fault[n] != ':') return;
    while (std::atoi(fault + n + 1) == rank)
        pause_process();
}

void tell(const char *format, ...)
{
    va_list arguments;

    if (std::getenv("GHP_EMULATED_TELL") == nullptr) return;
    va_start(arguments, format);
    std::vfprintf(stderr, format, arguments);
    va_end(arguments);
}

// What must not be registered any more.
void check_registrations(const ncclComm *comm, const void *at)
{
    for (const registration *r : registrations)
        if (r->comm == comm || r->memory == at) {
            std::fprintf(stderr, "emulated NCCL: memory or communicator ends while registered\n");
            std::abort();
        }
}

[[maybe_unused]] ncclResult_t add_registration(ncclComm *c, void *at, void **handle)
{
    const char *fault = std::getenv("GHP_EMULATED_NCCL");

    hang_if("register", c->rank);
    if (memory.count(at) == 0) return ncclInvalidArgument;
    if (c->rank == 0 && fault != nullptr && std::strcmp(fault, "register") == 0)
        return ncclSystemError;
    registrations.push_back(new registration{c, at});
    *handle = registrations.back();
    return ncclSuccess;
}

[[maybe_unused]] ncclResult_t end_registration(ncclComm *c, void *handle)
{
    auto found = std::find(registrations.begin(), registrations.end(), handle);

    if (found == registrations.end() || (*found)->comm != c) return ncclInvalidArgument;
    delete *found;
    registrations.erase(found);
    tell("emulated NCCL: deregistered\n");
    return ncclSuccess;
}

// Whether this exchange is the one that ends in an error.
bool fails(ncclComm *c)
{
    static int exchanges;
    const char *fault = std::getenv("GHP_EMULATED_NCCL");
    int rank = -1;

    if (fault == nullptr) return false;
    if (std::strcmp(fault, "error") == 0) return true;
    return std::sscanf(fault, "exchange:%d", &rank) == 1 && rank == c->rank && ++exchanges == 12;
}

ncclResult_t start(ncclComm *c, cudaStream_t stream, const char *name, std::function<void()> work)
{
    hang_if("first", c->rank);
    const char *fault = std::getenv("GHP_EMULATED_NCCL");

    if (fault != nullptr && std::strcmp(fault, "error") == 0) {
        c->error = ncclRemoteError;
        return ncclSuccess;
    }
    if (!c->met) meet(c, true);
    c->met = true;
    emulated_enqueue_waiting(stream, name, std::move(work));
    return ncclSuccess;
}

} // namespace

extern "C" {

ncclResult_t ncclGetVersion(int *version)
{
    *version = NCCL_VERSION_CODE;
    return ncclSuccess;
}

const char *ncclGetErrorString(ncclResult_t result)
{
    return result == ncclRemoteError ? "remote error" : "an error";
}

const char *ncclGetLastError(ncclComm_t)
{
    return "";
}

ncclResult_t ncclGetUniqueId(ncclUniqueId *id)
{
    static int made;
    timespec now;

    clock_gettime(CLOCK_REALTIME, &now);
    std::memset(id, 0, sizeof(*id));
    std::snprintf(id->internal, sizeof(id->internal), "/ghp-nccl-%d-%d-%ld", (int)getpid(), made++,
                  now.tv_nsec);
    return ncclSuccess;
}

ncclResult_t ncclCommInitRankConfig(ncclComm_t *comm, int size, ncclUniqueId id, int rank,
                                    ncclConfig_t *config)
{
    size_t pairs = (size_t)size * (size_t)size, bytes = 64 + pairs * (kPiece + sizeof(box));
    hang_if("start", rank);
    int file = shm_open(id.internal, O_RDWR | O_CREAT, 0600);

    if (rank < 0 || rank >= size || file < 0) return ncclInvalidArgument;
    if (ftruncate(file, (off_t)bytes) != 0) return ncclSystemError;
    void *at = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    close(file);
    if (at == MAP_FAILED) return ncclSystemError;
    *comm = new ncclComm{rank,  size,          (meeting *)at, (char *)at + 64, nullptr,
                         bytes, {ncclSuccess}, {false},       false,           {}};
    (*comm)->boxes = (box *)((*comm)->pieces + pairs * kPiece);
    (*comm)->shared->present.fetch_add(1);
    while ((*comm)->shared->present.load() < size)
        pause_process();
    meet(*comm);
    if (rank == 0) shm_unlink(id.internal);
    if (config->maxCTAs != NCCL_CONFIG_UNDEF_INT)
        tell("emulated NCCL: %d blocks for %d ranks\n", config->maxCTAs, size);
    return ncclSuccess;
}

#if EMULATED_NCCL_MINOR >= 19
ncclResult_t ncclMemAlloc(void **at, size_t bytes)
{
    void *base = nullptr;

    if (cudaMalloc(&base, bytes + kPage) != cudaSuccess) return ncclUnhandledCudaError;
    *at = (void *)(((uintptr_t)base + kPage - 1) / kPage * kPage);
    memory[*at] = base;
    tell("emulated NCCL: %zu bytes allocated\n", bytes);
    return ncclSuccess;
}

ncclResult_t ncclMemFree(void *at)
{
    if (memory.count(at) == 0) return ncclInvalidArgument;
    check_registrations(nullptr, at);
    cudaFree(memory[at]);
    memory.erase(at);
    tell("emulated NCCL: freed\n");
    return ncclSuccess;
}

ncclResult_t ncclCommRegister(const ncclComm_t c, void *at, size_t bytes, void **handle)
{
    ncclResult_t result = add_registration(c, at, handle);

    if (result == ncclSuccess) tell("emulated NCCL: %zu bytes registered, local\n", bytes);
    return result;
}

ncclResult_t ncclCommDeregister(const ncclComm_t c, void *handle)
{
    return end_registration(c, handle);
}
#endif

#if EMULATED_NCCL_MINOR >= 27
ncclResult_t ncclCommWindowRegister(ncclComm_t c, void *at, size_t bytes, ncclWindow_t *window,
                                    int flags)
{
    ncclResult_t result = add_registration(c, at, (void **)window);

    meet(c, true);
    if (result != ncclSuccess) return result;
    tell("emulated NCCL: %zu bytes registered, %s\n", bytes, flags == 1 ? "symmetric" : "window");
    return ncclSuccess;
}

ncclResult_t ncclCommWindowDeregister(ncclComm_t c, ncclWindow_t window)
{
    return end_registration(c, (void *)window);
}
#endif

ncclResult_t ncclCommGetAsyncError(ncclComm_t c, ncclResult_t *result)
{
    *result = c->error;
    return ncclSuccess;
}

ncclResult_t ncclCommFinalize(ncclComm_t c)
{
    hang_if("end", c->rank);
    meet(c, true);
    return ncclSuccess;
}

ncclResult_t ncclCommDestroy(ncclComm_t c)
{
    check_registrations(c, nullptr);
    munmap((void *)c->shared, c->bytes);
    delete c;
    return ncclSuccess;
}

// What of it is in streams still asks whether it was.
ncclResult_t ncclCommAbort(ncclComm_t c)
{
    c->aborted = true;
    return ncclSuccess;
}

ncclResult_t ncclAllReduce(const void *in, void *out, size_t n, ncclDataType_t type, ncclRedOp_t,
                           ncclComm_t c, cudaStream_t stream)
{
    return start(c, stream, "ncclAllReduce",
                 [=] { sum_pieces(c, (const char *)in, (char *)out, n * size_of(type), type); });
}

ncclResult_t ncclReduceScatter(const void *in, void *out, size_t n, ncclDataType_t type,
                               ncclRedOp_t, ncclComm_t c, cudaStream_t stream)
{
    size_t bytes = n * size_of(type);

    return start(c, stream, "ncclReduceScatter", [=] {
        std::vector<char> whole(bytes * (size_t)c->size);

        sum_pieces(c, (const char *)in, whole.data(), whole.size(), type);
        std::memcpy(out, whole.data() + bytes * (size_t)c->rank, bytes);
    });
}

ncclResult_t ncclAllGather(const void *mine, void *all, size_t n, ncclDataType_t type, ncclComm_t c,
                           cudaStream_t stream)
{
    return start(c, stream, "ncclAllGather", [=] {
        std::vector<char> copy((const char *)mine, (const char *)mine + n * size_of(type));

        gather_pieces(c, copy.data(), (char *)all, copy.size());
    });
}

static ncclResult_t add(bool sends, void *at, size_t bytes, int peer, ncclComm_t c,
                        cudaStream_t stream)
{
    if (depth == 0) return ncclInvalidUsage; // alone it would wait for the other side
    if (c->transfers.empty()) grouped.push_back({c, stream});
    c->transfers.push_back({sends, at, bytes, peer, 0, false});
    return ncclSuccess;
}

ncclResult_t ncclSend(const void *at, size_t n, ncclDataType_t type, int peer, ncclComm_t c,
                      cudaStream_t stream)
{
    return add(true, const_cast<void *>(at), n * size_of(type), peer, c, stream);
}

ncclResult_t ncclRecv(void *at, size_t n, ncclDataType_t type, int peer, ncclComm_t c,
                      cudaStream_t stream)
{
    return add(false, at, n * size_of(type), peer, c, stream);
}

ncclResult_t ncclGroupStart()
{
    depth++;
    return ncclSuccess;
}

ncclResult_t ncclGroupEnd()
{
    if (--depth > 0) return ncclSuccess;
    for (auto &[comm, stream] : grouped) {
        ncclComm *c = comm;

        hang_if("first", c->rank);
        bool well = !fails(c);

        if (well)
            connect(c);
        else
            c->error = ncclRemoteError;
        emulated_enqueue_waiting(stream, "ncclSend and ncclRecv",
                                 [c, well, transfers = c->transfers] {
                                     while (!well && !c->aborted)
                                         pause_process();
                                     exchange(c, transfers);
                                 });
        c->transfers.clear();
    }
    grouped.clear();
    return ncclSuccess;
}
}
