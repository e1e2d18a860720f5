// tests/emulated/runtime.cpp - as much of CUDA's run-time as ghp uses, on a processor, for tests without a GPU.
//
// Streams are as late as CUDA allows: work is done only when something waits for it - a synchronisation, or the second
// question whether an event is passed - and then no more of it than that needs, unless it waits for other processes:
// then all streams continue, each by itself, also inside of graphs. So a missing wait shows. What would be
// wrong on a GPU fails here too: waiting or allocating while a stream is captured, a capture whose streams do not come
// together again, device memory that is freed twice. New memory holds rubbish.
//
// GHP_EMULATED=eager does work at once: for several ranks on one thread each, whose collectives wait for each other.
// GHP_EMULATED_CAPTURE: the rank whose graphs cannot be made.
// GHP_EMULATED_GPUS: how many there are, 0 for none; unset 1; "own": each rank sees one, its own.
// GHP_EMULATED_OLD: they have compute capability 7.0.
// GHP_EMULATED_BYTES: of their memory, in place of 4 GiB.
// GHP_EMULATED_STUCK=R:N: the N-th kernel of rank R never ends.
// GHP_EMULATED_MIG: each is an instance of a GPU.
// GHP_EMULATED_COUNT=FILE: nothing is computed, so networks of any size run; at the end FILE gets a line with the
// graphs that were launched, and their kernels, copies and timed events, and a line for each kernel with how often.
#include "tests/emulated/grid.hpp"

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cxxabi.h>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <thread>
#include <unistd.h>
#include <vector>

// At some work; false: it waits for others, and is tried again.
typedef std::function<bool()> attempt;
// The first one of each time that the work is done: graphs do it again.
typedef std::function<attempt()> attempts;

struct CUstream_st {
    int number = 0;
    int64_t enqueued = 0, done = 0;
    bool busy = false; // its first work is being tried
    std::deque<attempt> stream;
};

typedef std::map<int, int64_t> clocks; // of streams by their numbers: how far something has come
typedef std::map<std::string, int64_t> counts;

struct CUevent_st {
    CUstream_st *stream = nullptr; // last recorded there; nullptr: never
    int64_t position = 0;
    double at_s = 0;
    bool timed = false, asked = false;
    int64_t capture = 0; // recorded in this capture; 0: in none
    clocks seen;
};

// One of a graph: its work, what has to be done before, and how far its stream has come with it.
struct node {
    attempts work;
    clocks after;
    int number;
    int64_t clock;
};

struct CUgraph_st {
    std::vector<node> nodes;
    std::vector<CUevent_st *> events; // recorded each time it is launched
    int64_t kernels = 0, copies = 0;
    counts by_name; // of kernels
};

struct CUgraphExec_st {
    CUgraph_st graph;
};

namespace
{

std::recursive_mutex lock;
typedef std::lock_guard<std::recursive_mutex> guard;

struct capture {
    int64_t number = 0; // > 0 while there is one
    CUstream_st *origin = nullptr;
    std::map<CUstream_st *, clocks> streams; // that take part: what they have seen
    clocks issued;
    CUgraph_st *graph = nullptr;
};

thread_local capture recording;
int64_t captures, streams_made;
std::map<void *, size_t> device_blocks, host_blocks;
size_t allocated;
thread_local cudaError_t last_error = cudaSuccess;
const char *const count_path = std::getenv("GHP_EMULATED_COUNT");
const char *const bytes_text = std::getenv("GHP_EMULATED_BYTES");
const size_t kTotal = bytes_text != nullptr ? std::strtoull(bytes_text, nullptr, 10)
                                            : size_t(count_path != nullptr ? 80 : 4) << 30;
const size_t kContext = 1 << 20; // the driver takes some

struct totals { // of graphs that were launched
    int64_t graphs = 0, kernels = 0, copies = 0, events = 0;
    counts by_name;

    ~totals()
    {
        FILE *file = count_path != nullptr ? std::fopen(count_path, "a") : nullptr;

        if (file == nullptr) return;
        std::fprintf(file, "graphs %lld kernels %lld copies %lld events %lld\n", (long long)graphs,
                     (long long)kernels, (long long)copies, (long long)events);
        for (auto &[name, n] : by_name)
            std::fprintf(file, "%lld %s\n", (long long)n, name.c_str());
        std::fclose(file);
    }
} launched;

cudaError_t result(cudaError_t error)
{
    if (error != cudaSuccess) last_error = error;
    return error;
}

bool eager()
{
    const char *how = std::getenv("GHP_EMULATED");

    return how != nullptr && std::strcmp(how, "eager") == 0;
}

double now_s()
{
    return (double)global_nanoseconds() * 1e-9;
}

// This process's among those that mpirun started.
int rank()
{
    const char *text = std::getenv("OMPI_COMM_WORLD_RANK");

    if (text == nullptr) text = std::getenv("PMI_RANK");
    return text != nullptr ? std::atoi(text) : 0;
}

bool has_own()
{
    const char *text = std::getenv("GHP_EMULATED_GPUS");

    return text != nullptr && std::strcmp(text, "own") == 0;
}

bool captured(CUstream_st *stream)
{
    return recording.number > 0 && recording.streams.count(stream) > 0;
}

std::vector<CUstream_st *> all_streams;

// Does a stream's work up to a position; false: some of it waits for others.
bool advance(CUstream_st *stream, int64_t position)
{
    while (stream->done < position) {
        if (stream->busy) return false;
        stream->busy = true;
        bool over = stream->stream.front()();

        stream->busy = false;
        if (!over) return false;
        stream->stream.pop_front();
        stream->done++;
    }
    return true;
}

void progress()
{
    for (CUstream_st *stream : all_streams)
        advance(stream, stream->enqueued);
}

// Under the lock, which others get meanwhile.
void drain(CUstream_st *stream, int64_t position)
{
    while (!advance(stream, position)) {
        progress();
        lock.unlock();
        usleep(20);
        lock.lock();
    }
}

void put(CUstream_st *stream, attempts work)
{
    if (captured(stream)) {
        clocks after = recording.streams[stream];
        int64_t clock = ++recording.issued[stream->number];

        recording.streams[stream][stream->number] = clock;
        recording.graph->nodes.push_back({std::move(work), after, stream->number, clock});
        return;
    }
    stream->stream.push_back(work());
    stream->enqueued++;
    if (eager()) progress();
}

// Work that waits for nobody.
attempts simply(std::function<void()> work)
{
    return [=]() -> attempt {
        return [=] {
            work();
            return true;
        };
    };
}

// Whether this kernel is the one that never ends.
bool is_stuck()
{
    static const char *const fault = std::getenv("GHP_EMULATED_STUCK");
    static int64_t kernels;
    int of = -1, n = 0;

    return fault != nullptr && std::sscanf(fault, "%d:%d", &of, &n) == 2 && of == rank() &&
           ++kernels == n;
}

attempts never()
{
    return [] { return [] { return false; }; };
}

// Work on a thread of its own.
attempts waiting(std::function<void()> work)
{
    return [=]() -> attempt {
        enum { NEW, BEGUN, OVER };
        auto state = std::make_shared<std::atomic<int>>(NEW);

        return [=] {
            if (*state == NEW) {
                *state = BEGUN;
                std::thread([=] {
                    work();
                    *state = OVER;
                }).detach();
            }
            return *state == OVER;
        };
    };
}

void merge(clocks &into, const clocks &from)
{
    for (auto &[number, clock] : from)
        if (into[number] < clock) into[number] = clock;
}

void drain_all()
{
    for (CUstream_st *stream : all_streams)
        drain(stream, stream->enqueued);
}

bool inside(const std::map<void *, size_t> &blocks, const void *at, size_t bytes)
{
    auto next = blocks.upper_bound(const_cast<void *>(at));

    if (next == blocks.begin()) return false;
    --next;
    return (const char *)at + bytes <= (const char *)next->first + next->second;
}

} // namespace

std::string emulated_name(const char *call, const std::type_info *function)
{
    const std::string nowhere = "(anonymous namespace)::";
    std::string name(call, std::strcspn(call, "<,"));

    if (count_path == nullptr || function == nullptr) return name;
    char *text = abi::__cxa_demangle(function->name(), nullptr, nullptr, nullptr);
    std::string of = text != nullptr ? text : function->name();

    std::free(text);
    for (size_t at; (at = of.find(nowhere)) != std::string::npos;)
        of.erase(at, nowhere.size());
    return name + " " + of;
}

static void note_kernel(cudaStream_t stream, const std::string &name)
{
    if (!captured(stream) || name.empty()) return;
    recording.graph->kernels++;
    recording.graph->by_name[name]++;
}

void emulated_enqueue(cudaStream_t stream, const std::string &name, std::function<void()> work)
{
    guard g(lock);

    note_kernel(stream, name);
    put(stream, is_stuck() ? never() : simply(count_path != nullptr ? [] {} : std::move(work)));
}

void emulated_enqueue_waiting(cudaStream_t stream, const std::string &name,
                              std::function<void()> work)
{
    guard g(lock);

    note_kernel(stream, name);
    put(stream, count_path != nullptr ? simply([] {}) : waiting(std::move(work)));
}

void emulated_progress()
{
    guard g(lock);

    progress();
}

// A graph's nodes, in the order of their recording as far as none waits.
static attempts launch_of(const CUgraph_st *graph)
{
    return [=]() -> attempt {
        struct launch {
            std::vector<attempt> left; // empty: done
            clocks done;
            size_t first = 0; // that is not done
        };
        auto l = std::make_shared<launch>();

        for (auto &n : graph->nodes)
            l->left.push_back(n.work());
        return [=] {
            for (bool moved = true; moved;) {
                moved = false;
                for (size_t i = l->first; i < l->left.size(); i++) {
                    const node &n = graph->nodes[i];
                    bool may = l->left[i] != nullptr;

                    for (auto &[number, clock] : n.after)
                        may = may && l->done[number] >= clock;
                    if (!may || !l->left[i]()) continue;
                    l->left[i] = nullptr;
                    l->done[n.number] = n.clock;
                    moved = true;
                }
                while (l->first < l->left.size() && l->left[l->first] == nullptr)
                    l->first++;
            }
            return l->first == l->left.size();
        };
    };
}

extern "C" {

cudaError_t cudaGetDeviceCount(int *count)
{
    const char *text = std::getenv("GHP_EMULATED_GPUS");
    int n = text != nullptr && !has_own() ? std::atoi(text) : 1;

    if (n <= 0) return result(cudaErrorNoDevice);
    *count = n;
    return cudaSuccess;
}

cudaError_t cudaSetDevice(int device)
{
    int n = 0;

    cudaGetDeviceCount(&n);
    return result(device >= 0 && device < n ? cudaSuccess : cudaErrorInvalidDevice);
}

cudaError_t cudaDriverGetVersion(int *version)
{
    *version = CUDART_VERSION;
    return cudaSuccess;
}

cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *properties, int device)
{
    *properties = cudaDeviceProp();
    std::snprintf(properties->name, sizeof(properties->name), "emulated GPU%s",
                  std::getenv("GHP_EMULATED_MIG") != nullptr ? " MIG 1g.10gb" : "");
    properties->uuid.bytes[0] = (char)(1 + (has_own() ? rank() : device));
    properties->l2CacheSize = 1 << 20;
    properties->multiProcessorCount = 132;
    properties->major = std::getenv("GHP_EMULATED_OLD") != nullptr ? 7 : 9;
    return cudaSuccess;
}

cudaError_t cudaDeviceGetStreamPriorityRange(int *least, int *greatest)
{
    *least = 0;
    *greatest = -5;
    return cudaSuccess;
}

cudaError_t cudaGetLastError(void)
{
    cudaError_t error = last_error;

    last_error = cudaSuccess;
    return error;
}

const char *cudaGetErrorString(cudaError_t error)
{
    static thread_local char text[64];

    std::snprintf(text, sizeof(text), "emulated error %d", (int)error);
    return text;
}

cudaError_t cudaMemGetInfo(size_t *free_bytes, size_t *total)
{
    guard g(lock);

    *total = kTotal;
    *free_bytes = kTotal > allocated + kContext ? kTotal - allocated - kContext : 0;
    return cudaSuccess;
}

cudaError_t cudaMalloc(void **base, size_t bytes)
{
    guard g(lock);

    if (recording.number > 0) return result(cudaErrorStreamCaptureUnsupported);
    if (bytes + kContext + allocated > kTotal) return result(cudaErrorMemoryAllocation);
    *base = std::aligned_alloc(256, (bytes + 255) / 256 * 256);
    if (*base == nullptr) return result(cudaErrorMemoryAllocation);
    if (count_path == nullptr)
        std::memset(*base, 0xcb, bytes);
    else if (bytes < (size_t)1 << 20)
        std::memset(*base, 0, bytes); // what was freed before; more is new, and zeroed when it is read
    device_blocks[*base] = bytes;
    allocated += bytes;
    return cudaSuccess;
}

cudaError_t cudaFree(void *base)
{
    guard g(lock);

    if (base == nullptr) return cudaSuccess;
    if (recording.number > 0) return result(cudaErrorStreamCaptureUnsupported);
    if (device_blocks.count(base) == 0) return result(cudaErrorInvalidValue);
    drain_all(); // it waits for the whole device
    allocated -= device_blocks[base];
    device_blocks.erase(base);
    std::free(base);
    return cudaSuccess;
}

cudaError_t cudaHostAlloc(void **base, size_t bytes, unsigned)
{
    guard g(lock);

    if (recording.number > 0) return result(cudaErrorStreamCaptureUnsupported);
    *base = std::aligned_alloc(256, (bytes + 255) / 256 * 256);
    if (*base == nullptr) return result(cudaErrorMemoryAllocation);
    host_blocks[*base] = bytes;
    return cudaSuccess;
}

cudaError_t cudaFreeHost(void *base)
{
    guard g(lock);

    if (base == nullptr) return cudaSuccess;
    if (host_blocks.erase(base) == 0) return result(cudaErrorInvalidValue);
    drain_all();
    std::free(base);
    return cudaSuccess;
}

// Pinned memory is read and written when the stream comes to it; other host memory before the call returns.
cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind,
                            cudaStream_t stream)
{
    guard g(lock);
    bool to_device = inside(device_blocks, to, bytes),
         from_device = inside(device_blocks, from, bytes);
    const void *host = kind == cudaMemcpyHostToDevice ? from : to;

    if ((kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice) != to_device ||
        (kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice) != from_device)
        return result(cudaErrorInvalidValue);
    if (captured(stream)) recording.graph->copies++;
    if (kind == cudaMemcpyDeviceToDevice || inside(host_blocks, host, bytes)) {
        put(stream, simply([=] { std::memmove(to, from, bytes); }));
        return cudaSuccess;
    }
    if (captured(stream)) return result(cudaErrorStreamCaptureUnsupported);
    drain(stream, stream->enqueued);
    std::memmove(to, from, bytes);
    return cudaSuccess;
}

cudaError_t cudaMemsetAsync(void *to, int value, size_t bytes, cudaStream_t stream)
{
    guard g(lock);

    if (!inside(device_blocks, to, bytes)) return result(cudaErrorInvalidValue);
    if (captured(stream)) recording.graph->copies++;
    put(stream, simply([=] {
            if (count_path == nullptr) std::memset(to, value, bytes);
        }));
    return cudaSuccess;
}

// ---- streams and events ----

cudaError_t cudaStreamCreateWithPriority(cudaStream_t *stream, unsigned, int)
{
    guard g(lock);

    *stream = new CUstream_st;
    (*stream)->number = (int)++streams_made;
    all_streams.push_back(*stream);
    return cudaSuccess;
}

cudaError_t cudaStreamDestroy(cudaStream_t stream)
{
    guard g(lock);

    drain(stream, stream->enqueued);
    for (size_t i = 0; i < all_streams.size(); i++)
        if (all_streams[i] == stream) all_streams.erase(all_streams.begin() + (long)i--);
    delete stream;
    return cudaSuccess;
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream)
{
    guard g(lock);

    if (captured(stream)) return result(cudaErrorStreamCaptureUnsupported);
    drain(stream, stream->enqueued);
    return cudaSuccess;
}

cudaError_t cudaDeviceSynchronize(void)
{
    guard g(lock);

    if (recording.number > 0) return result(cudaErrorStreamCaptureUnsupported);
    drain_all();
    return cudaSuccess;
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned flags)
{
    *event = new CUevent_st;
    (*event)->timed = (flags & cudaEventDisableTiming) == 0;
    return cudaSuccess;
}

cudaError_t cudaEventDestroy(cudaEvent_t event)
{
    guard g(lock);

    if (event->stream != nullptr && event->capture == 0) drain(event->stream, event->position);
    delete event;
    return cudaSuccess;
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream)
{
    guard g(lock);

    event->asked = false;
    event->stream = stream;
    if (captured(stream)) { // an edge of the graph
        event->capture = recording.number;
        event->seen = recording.streams[stream];
        return cudaSuccess;
    }
    event->capture = 0;
    put(stream, simply([=] { event->at_s = now_s(); }));
    event->position = stream->enqueued;
    return cudaSuccess;
}

cudaError_t cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t stream, unsigned flags)
{
    guard g(lock);

    if (flags != cudaEventRecordExternal) return cudaEventRecord(event, stream);
    if (!captured(stream)) return result(cudaErrorIllegalState);
    put(stream, simply([=] { event->at_s = now_s(); }));
    recording.graph->events.push_back(event);
    return cudaSuccess;
}

cudaError_t cudaEventQuery(cudaEvent_t event)
{
    guard g(lock);

    if (event->stream == nullptr) return cudaSuccess;
    if (event->capture != 0) return result(cudaErrorCapturedEvent);
    if (event->asked && !advance(event->stream, event->position)) progress();
    event->asked = true;
    return event->stream->done >= event->position ? cudaSuccess : result(cudaErrorNotReady);
}

cudaError_t cudaEventElapsedTime(float *milliseconds, cudaEvent_t first, cudaEvent_t last)
{
    guard g(lock);

    for (cudaEvent_t event : {first, last}) {
        if (!event->timed || event->stream == nullptr || event->capture != 0)
            return result(cudaErrorInvalidResourceHandle);
        if (event->stream->done < event->position) return result(cudaErrorNotReady);
    }
    *milliseconds = (float)((last->at_s - first->at_s) * 1e3);
    return cudaSuccess;
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned)
{
    guard g(lock);
    CUstream_st *other = event->stream;
    int64_t position = event->position;

    if (other == nullptr) return cudaSuccess;
    if (event->capture != 0) {
        if (event->capture != recording.number) return result(cudaErrorCapturedEvent);
        merge(recording.streams[stream], event->seen); // and so takes part
        return cudaSuccess;
    }
    if (captured(stream)) return result(cudaErrorStreamCaptureIsolation);
    put(stream, [=]() -> attempt { return [=] { return advance(other, position); }; });
    return cudaSuccess;
}

// ---- graphs ----

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, enum cudaStreamCaptureMode)
{
    guard g(lock);

    if (recording.number > 0) return result(cudaErrorIllegalState);
    recording.number = ++captures;
    recording.origin = stream;
    recording.streams[stream];
    recording.graph = new CUgraph_st;
    return cudaSuccess;
}

cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t *graph)
{
    guard g(lock);
    bool joined = true;

    if (recording.number == 0 || recording.origin != stream) return result(cudaErrorIllegalState);
    for (auto &[number, clock] : recording.issued)
        joined = joined && recording.streams[stream][number] == clock;
    *graph = recording.graph;
    recording = capture();
    if (joined) return cudaSuccess;
    delete *graph;
    *graph = nullptr;
    return result(cudaErrorStreamCaptureUnjoined);
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t *made, cudaGraph_t graph, unsigned long long)
{
    const char *faulty = std::getenv("GHP_EMULATED_CAPTURE");

    if (faulty != nullptr && std::atoi(faulty) == rank()) return result(cudaErrorMemoryAllocation);
    *made = new CUgraphExec_st{*graph};
    return cudaSuccess;
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph)
{
    delete graph;
    return cudaSuccess;
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t graph)
{
    guard g(lock);

    drain_all();
    delete graph;
    return cudaSuccess;
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t graph, cudaStream_t stream)
{
    guard g(lock);

    if (captured(stream)) return result(cudaErrorStreamCaptureUnsupported);
    launched.graphs++;
    launched.kernels += graph->graph.kernels;
    launched.copies += graph->graph.copies;
    launched.events += (int64_t)graph->graph.events.size();
    for (auto &[name, n] : graph->graph.by_name)
        launched.by_name[name] += n;
    put(stream, launch_of(&graph->graph));
    for (CUevent_st *event : graph->graph.events) {
        event->stream = stream;
        event->position = stream->enqueued;
        event->capture = 0;
        event->asked = false;
    }
    return cudaSuccess;
}
}
