// tests/emulated/nccl.cpp - as much of NCCL as ghp uses, between processes of one machine, on an emulated GPU.
//
// Built as a library of NCCL's name, which ghp opens like the real one. Ranks meet in shared memory that the unique
// identity names; a collective goes through it in pieces when its stream comes to it (GHP_EMULATED=eager: at once), and
// sums are made in rank order. As in NCCL, making a communicator and ending it wait for all its ranks.
// GHP_EMULATED_NCCL=error: the next collective ends in a remote error, which shows when it is asked about.
// GHP_EMULATED_NCCL=start:R, first:R or end:R: rank R never comes to make its communicators, to its first collective or
// to their end.
#include "tests/emulated/launch.hpp"

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <fcntl.h>
#include <nccl.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>
#include <vector>

namespace
{

constexpr size_t kPiece = 64 * 1024; // of one rank for one other

struct meeting { // in shared memory; zeroed at first
    std::atomic<int> arrived, generation, present;
};

struct transfer { // of a group
    bool sends;
    void *at;
    size_t bytes;
    int peer;
};

} // namespace

struct ncclComm {
    int rank, size;
    meeting *shared;
    char *pieces; // [size][size][kPiece]: from, for
    size_t bytes;
    ncclResult_t error;
    std::vector<transfer> transfers;
};

namespace
{

int depth; // of groups
std::vector<std::pair<ncclComm *, cudaStream_t>> grouped;

void pause_process()
{
    timespec some = {0, 20000};

    nanosleep(&some, nullptr);
}

void meet(ncclComm *c)
{
    int generation = c->shared->generation.load();

    if (c->shared->arrived.fetch_add(1) + 1 == c->size) {
        c->shared->arrived.store(0);
        c->shared->generation.fetch_add(1);
        return;
    }
    while (c->shared->generation.load() == generation)
        pause_process();
}

char *piece(ncclComm *c, int from, int to)
{
    return c->pieces + ((size_t)from * (size_t)c->size + (size_t)to) * kPiece;
}

size_t size_of(ncclDataType_t type)
{
    return type == ncclInt8 ? 1 : type == ncclBfloat16 ? 2 : type == ncclFloat32 ? 4 : 8;
}

double number(const char *at, ncclDataType_t type, size_t i)
{
    if (type == ncclFloat64) return reinterpret_cast<const double *>(at)[i];
    if (type == ncclFloat32) return (double)reinterpret_cast<const float *>(at)[i];
    return (double)widened(reinterpret_cast<const uint16_t *>(at)[i]);
}

void put_number(char *at, ncclDataType_t type, size_t i, double value)
{
    if (type == ncclFloat64)
        reinterpret_cast<double *>(at)[i] = value;
    else if (type == ncclFloat32)
        reinterpret_cast<float *>(at)[i] = (float)value;
    else
        reinterpret_cast<uint16_t *>(at)[i] = narrowed((float)value);
}

// out = sum over ranks of their `in`, `bytes` of it at a time.
void sum_pieces(ncclComm *c, const char *in, char *out, size_t bytes, ncclDataType_t type)
{
    for (size_t done = 0; done < bytes; done += kPiece) {
        size_t now = bytes - done < kPiece ? bytes - done : kPiece;

        std::memcpy(piece(c, c->rank, 0), in + done, now);
        meet(c);
        for (size_t i = 0; i < now / size_of(type); i++) {
            double sum = 0;

            for (int r = 0; r < c->size; r++)
                sum += number(piece(c, r, 0), type, i);
            put_number(out + done, type, i, sum);
        }
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

// Every rank sends as much to each as it receives.
void exchange_pieces(ncclComm *c, const std::vector<transfer> &transfers)
{
    size_t bytes = transfers.empty() ? 0 : transfers[0].bytes;

    for (size_t done = 0; done < bytes; done += kPiece) {
        size_t now = bytes - done < kPiece ? bytes - done : kPiece;

        for (auto &t : transfers)
            if (t.sends) std::memcpy(piece(c, c->rank, t.peer), (char *)t.at + done, now);
        meet(c);
        for (auto &t : transfers)
            if (!t.sends) std::memcpy((char *)t.at + done, piece(c, t.peer, c->rank), now);
        meet(c);
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

ncclResult_t start(ncclComm *c, cudaStream_t stream, const char *name, std::function<void()> work)
{
    hang_if("first", c->rank);
    const char *fault = std::getenv("GHP_EMULATED_NCCL");

    if (fault != nullptr && std::strcmp(fault, "error") == 0)
        c->error = ncclRemoteError;
    else
        emulated_enqueue(stream, name, std::move(work));
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

ncclResult_t ncclCommInitRank(ncclComm_t *comm, int size, ncclUniqueId id, int rank)
{
    size_t bytes = sizeof(meeting) + 64 + (size_t)size * (size_t)size * kPiece;
    hang_if("start", rank);
    int file = shm_open(id.internal, O_RDWR | O_CREAT, 0600);

    if (rank < 0 || rank >= size || file < 0) return ncclInvalidArgument;
    if (ftruncate(file, (off_t)bytes) != 0) return ncclSystemError;
    void *at = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    close(file);
    if (at == MAP_FAILED) return ncclSystemError;
    *comm = new ncclComm{rank, size, (meeting *)at, (char *)at + 64, bytes, ncclSuccess, {}};
    (*comm)->shared->present.fetch_add(1);
    while ((*comm)->shared->present.load() < size)
        pause_process();
    meet(*comm);
    if (rank == 0) shm_unlink(id.internal);
    return ncclSuccess;
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t c, ncclResult_t *result)
{
    *result = c->error;
    return ncclSuccess;
}

ncclResult_t ncclCommFinalize(ncclComm_t c)
{
    hang_if("end", c->rank);
    meet(c);
    return ncclSuccess;
}

ncclResult_t ncclCommDestroy(ncclComm_t c)
{
    munmap((void *)c->shared, c->bytes);
    delete c;
    return ncclSuccess;
}

ncclResult_t ncclCommAbort(ncclComm_t c)
{
    return ncclCommDestroy(c);
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
    c->transfers.push_back({sends, at, bytes, peer});
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
        std::vector<transfer> transfers = std::move(c->transfers);

        c->transfers.clear();
        start(c, stream, "ncclSend and ncclRecv", [=] { exchange_pieces(c, transfers); });
    }
    grouped.clear();
    return ncclSuccess;
}
}
