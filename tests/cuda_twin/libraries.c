// NVIDIA's libraries as far as the program's host code can tell, for tests of that code without a GPU: functions with the prototypes of
// cuda.h, nvrtc.h and cublasLt.h over the host's memory. Kernels compute nothing. What a driver would refuse ends the process with a
// message: copies beyond an allocation, calls without a context, handles of nobody, a second free. With MOCK_REPORT a file gets what
// was never given back when the process ends.
//
// Compiled three times, with LIBRARY 1 (libcuda.so.1), 2 (libnvrtc.so.13) and 3 (libcublasLt.so.13).
//   MOCK_DEVICES   how many GPUs there are [1]
//   MOCK_MODE      compute mode; 3 is exclusive, and another process has the device
//   MOCK_SHARED    shared memory that a block may have [232448]
//   MOCK_CUBLASLT  what cublasLtCreate answers [0]
//   MOCK_EMBEDDED  0 for a driver that refuses the kernels inside the program [1]
//   MOCK_FAIL_AT   the launch, counted from 1, that reads memory nobody has: from then on every call of the process is answered with it [never]
//   MOCK_FAIL_ONCE a file that the failing process makes, and that keeps later ones from failing
//   MOCK_PTXAS     the assembler's words, for who asks for them (--ptxas-options=-v) []
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))

static int number(const char *name, int otherwise) {
    const char *text = getenv(name);
    return text ? atoi(text) : otherwise;
}

static void refuse(const char *call, const char *why) {
    fprintf(stderr, "mock: %s: %s\n", call, why);
    abort();
}

#if LIBRARY == 1
typedef int CUresult;
typedef int CUdevice;
typedef int CUdevice_attribute;
typedef int CUfunction_attribute;
typedef unsigned long long CUdeviceptr;
typedef struct handle { int kind; double at; } *CUcontext, *CUstream, *CUevent, *CUmodule, *CUfunction;

enum { CONTEXT = 11, STREAM, EVENT, MODULE, FUNCTION, GRAPH, READY };
static int capturing;
struct block { char *at; size_t size; int host; };
static struct block blocks[1 << 16];
static int count, handles, retained;
static __thread CUcontext current;
static struct handle context = {CONTEXT};
// A device that has failed answers nothing else: CUDA_ERROR_ILLEGAL_ADDRESS.
static int failed;

static void launch_counted(void) {
    static int launches;
    const char *once = getenv("MOCK_FAIL_ONCE");
    if (++launches != number("MOCK_FAIL_AT", 0)) return;
    FILE *file = once ? fopen(once, "wx") : NULL;
    if (once && !file) return;
    if (file) fclose(file);
    failed = 700;
}

static void report(void) {
    const char *path = getenv("MOCK_REPORT");
    FILE *file = path ? fopen(path, "w") : NULL;
    int left = 0;
    for (int i = 0; i < count; i++) left += blocks[i].at != NULL;
    if (file) fprintf(file, "memory %d handles %d retained %d\n", left, handles, retained), fclose(file);
}
static void need_context(const char *call) {
    if (current != &context) refuse(call, "no context is current in this thread");
}
static void need(const char *call, struct handle *handle, int kind) {
    need_context(call);
    if (!handle || handle->kind != kind) refuse(call, "not such a handle");
}
static struct handle *made(int kind) {
    struct handle *handle = calloc(1, sizeof *handle);
    handle->kind = kind;
    handles += kind != FUNCTION;
    return handle;
}
static void inside(const char *call, const void *at, size_t size, int host) {
    need_context(call);
    if (capturing) refuse(call, "in a capture");
    if (size == 0) return;
    for (int i = 0; i < count; i++)
        if (blocks[i].at && blocks[i].host == host && (char *)at >= blocks[i].at && (char *)at + size <= blocks[i].at + blocks[i].size) return;
    refuse(call, "beyond an allocation");
}
static void *take(size_t size, int host) {
    if (size == 0) refuse("allocation", "of nothing");
    if (count == 1 << 16) refuse("allocation", "too many");
    // Large memory is only touched where it is used.
    blocks[count] = (struct block){calloc(1, size), size, host};
    return blocks[count++].at;
}
static CUresult give(const char *call, void *at, int host) {
    need_context(call);
    for (int i = 0; i < count; i++)
        if (blocks[i].at == at && blocks[i].host == host) {
            free(at);
            blocks[i].at = NULL;
            return 0;
        }
    refuse(call, "not an allocation");
    return 1;
}

EXPORT CUresult cuInit(unsigned int flags) {
    static int begun;
    if (!begun++) atexit(report);
    return flags ? 1 : number("MOCK_DEVICES", 1) ? 0 : 100;
}
EXPORT CUresult cuDriverGetVersion(int *version) { return *version = 13000, 0; }
EXPORT CUresult cuGetErrorName(CUresult error, const char **text) { return *text = error == 46 ? "CUDA_ERROR_DEVICE_UNAVAILABLE" : error == 700 ? "CUDA_ERROR_ILLEGAL_ADDRESS" : "CUDA_ERROR", 0; }
EXPORT CUresult cuGetErrorString(CUresult error, const char **text) { return *text = "the mock's words", error < 0; }
EXPORT CUresult cuDeviceGetCount(int *n) { return *n = number("MOCK_DEVICES", 1), 0; }
EXPORT CUresult cuDeviceGet(CUdevice *device, int ordinal) { return *device = ordinal, ordinal >= number("MOCK_DEVICES", 1) ? 101 : 0; }
EXPORT CUresult cuDeviceGetName(char *name, int length, CUdevice device) { return snprintf(name, length, "Mock %d", device), 0; }
EXPORT CUresult cuDeviceGetAttribute(int *value, CUdevice_attribute attribute, CUdevice device) {
    (void)device;
    switch (attribute) {
    case 16: return *value = 132, 0;
    case 20: return *value = number("MOCK_MODE", 0), 0;
    case 75: return *value = number("MOCK_MAJOR", 9), 0;
    case 76: return *value = number("MOCK_MINOR", 0), 0;
    case 97: return *value = number("MOCK_SHARED", 232448), 0;
    default: return 1;
    }
}
EXPORT CUresult cuDeviceTotalMem_v2(size_t *bytes, CUdevice device) { return *bytes = (size_t)8 << 30, device < 0; }
EXPORT CUresult cuDevicePrimaryCtxRetain(CUcontext *to, CUdevice device) {
    (void)device;
    if (number("MOCK_MODE", 0) == 3) return 46;
    retained++;
    return *to = &context, 0;
}
EXPORT CUresult cuCtxSetCurrent(CUcontext to) {
    if (to != &context) refuse("cuCtxSetCurrent", "not a context");
    return current = to, 0;
}
EXPORT CUresult cuMemGetInfo_v2(size_t *left, size_t *total) {
    need_context("cuMemGetInfo");
    size_t used = 0;
    for (int i = 0; i < count; i++) used += blocks[i].at && !blocks[i].host ? blocks[i].size : 0;
    *total = (size_t)4 << 30;
    return *left = *total - used, 0;
}
EXPORT CUresult cuMemAlloc_v2(CUdeviceptr *at, size_t size) {
    size_t left, total;
    cuMemGetInfo_v2(&left, &total);
    if (size > left) return 2;
    return *at = (CUdeviceptr)(uintptr_t)take(size, 0), 0;
}
EXPORT CUresult cuMemFree_v2(CUdeviceptr at) { return give("cuMemFree", (void *)(uintptr_t)at, 0); }
EXPORT CUresult cuMemHostAlloc(void **at, size_t size, unsigned int flags) {
    need_context("cuMemHostAlloc");
    return *at = take(size, 1), flags != 0;
}
EXPORT CUresult cuMemFreeHost(void *at) { return give("cuMemFreeHost", at, 1); }
EXPORT CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void *from, size_t size, CUstream stream) {
    need("cuMemcpyHtoDAsync", stream, STREAM);
    inside("cuMemcpyHtoDAsync", (void *)(uintptr_t)to, size, 0);
    return memcpy((void *)(uintptr_t)to, from, size), failed;
}
EXPORT CUresult cuMemcpyDtoHAsync_v2(void *to, CUdeviceptr from, size_t size, CUstream stream) {
    need("cuMemcpyDtoHAsync", stream, STREAM);
    inside("cuMemcpyDtoHAsync", (void *)(uintptr_t)from, size, 0);
    // Pinned: the copy may come later.
    inside("cuMemcpyDtoHAsync", to, size, 1);
    return memcpy(to, (void *)(uintptr_t)from, size), failed;
}
EXPORT CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr to, CUdeviceptr from, size_t size, CUstream stream) {
    need("cuMemcpyDtoDAsync", stream, STREAM);
    inside("cuMemcpyDtoDAsync", (void *)(uintptr_t)from, size, 0);
    inside("cuMemcpyDtoDAsync", (void *)(uintptr_t)to, size, 0);
    // Only measurements copy here, and nobody reads what they copied.
    return 0;
}
EXPORT CUresult cuMemsetD8Async(CUdeviceptr at, unsigned char value, size_t size, CUstream stream) {
    need("cuMemsetD8Async", stream, STREAM);
    inside("cuMemsetD8Async", (void *)(uintptr_t)at, size, 0);
    return memset((void *)(uintptr_t)at, value, size), 0;
}
EXPORT CUresult cuStreamCreate(CUstream *stream, unsigned int flags) { return need_context("cuStreamCreate"), *stream = made(STREAM), flags != 1; }
EXPORT CUresult cuStreamSynchronize(CUstream stream) {
    need("cuStreamSynchronize", stream, STREAM);
    if (capturing) refuse("cuStreamSynchronize", "in a capture");
    return failed;
}
static CUresult destroy(const char *call, struct handle *handle, int kind) {
    need(call, handle, kind);
    handle->kind = 0;
    return handles--, 0;
}
EXPORT CUresult cuStreamDestroy_v2(CUstream stream) { return destroy("cuStreamDestroy", stream, STREAM); }
// With and without timing.
EXPORT CUresult cuEventCreate(CUevent *event, unsigned int flags) { return need_context("cuEventCreate"), *event = made(EVENT), (*event)->at = flags ? -1 : 0, flags & ~2u; }
EXPORT CUresult cuEventRecord(CUevent event, CUstream stream) {
    // A device whose work takes a microsecond between two events.
    static double now;
    need("cuEventRecord", event, EVENT), need("cuEventRecord", stream, STREAM);
    if (capturing) refuse("cuEventRecord", "in a capture: it would note no time");
    now += 1e-3;
    if (event->at >= 0) event->at = now;
    return 0;
}
EXPORT CUresult cuEventElapsedTime(float *milliseconds, CUevent from, CUevent to) {
    need("cuEventElapsedTime", from, EVENT), need("cuEventElapsedTime", to, EVENT);
    if (from->at <= 0 || to->at < from->at) refuse("cuEventElapsedTime", "of events that were not recorded in this order with timing");
    return *milliseconds = to->at - from->at, 0;
}
EXPORT CUresult cuEventSynchronize(CUevent event) { return need("cuEventSynchronize", event, EVENT), failed; }
EXPORT CUresult cuStreamBeginCapture_v2(CUstream stream, int mode) {
    need("cuStreamBeginCapture", stream, STREAM);
    if (capturing++) refuse("cuStreamBeginCapture", "in a capture");
    return mode != 1;
}
EXPORT CUresult cuStreamEndCapture(CUstream stream, CUfunction *graph) {
    need("cuStreamEndCapture", stream, STREAM);
    if (capturing-- != 1) refuse("cuStreamEndCapture", "not in a capture");
    return *graph = made(GRAPH), 0;
}
EXPORT CUresult cuGraphInstantiateWithFlags(CUfunction *ready, CUfunction graph, unsigned long long flags) {
    need("cuGraphInstantiate", graph, GRAPH);
    return *ready = made(READY), flags != 0;
}
EXPORT CUresult cuGraphLaunch(CUfunction ready, CUstream stream) {
    need("cuGraphLaunch", ready, READY), need("cuGraphLaunch", stream, STREAM);
    if (capturing) refuse("cuGraphLaunch", "in a capture");
    return 0;
}
EXPORT CUresult cuEventDestroy_v2(CUevent event) { return destroy("cuEventDestroy", event, EVENT); }
EXPORT CUresult cuGraphDestroy(CUfunction graph) { return destroy("cuGraphDestroy", graph, GRAPH); }
EXPORT CUresult cuGraphExecDestroy(CUfunction ready) { return destroy("cuGraphExecDestroy", ready, READY); }
EXPORT CUresult cuModuleLoadData(CUmodule *module, const void *image) {
    need_context("cuModuleLoadData");
    // The program's own binaries, or those of the compiler below.
    const int known = memcmp(image, "\177ELF", 4) ? !strcmp(image, "a binary for sm_90") : number("MOCK_EMBEDDED", 1);
    return known ? (*module = made(MODULE), 0) : 200;
}
EXPORT CUresult cuModuleUnload(CUmodule module) { return destroy("cuModuleUnload", module, MODULE); }
EXPORT CUresult cuModuleGetFunction(CUfunction *function, CUmodule module, const char *name) {
    need("cuModuleGetFunction", module, MODULE);
    return *function = made(FUNCTION), strncmp(name, "earnest_", 8) ? 500 : 0;
}
EXPORT CUresult cuFuncSetAttribute(CUfunction function, CUfunction_attribute attribute, int value) {
    need("cuFuncSetAttribute", function, FUNCTION);
    return attribute != 8 || value > number("MOCK_SHARED", 232448);
}
EXPORT CUresult cuLaunchKernel(CUfunction function, unsigned int gx, unsigned int gy, unsigned int gz, unsigned int bx, unsigned int by,
                               unsigned int bz, unsigned int shared, CUstream stream, void **parameters, void **extra) {
    need("cuLaunchKernel", function, FUNCTION);
    need("cuLaunchKernel", stream, STREAM);
    const int sound = gx && gy && gz && gx < 1u << 31 && gy < 65536 && gz < 65536 && bx && bx <= 1024 && by == 1 && bz == 1;
    if (!sound || (int)shared > number("MOCK_SHARED", 232448) || !parameters || !parameters[0] || extra) refuse("cuLaunchKernel", "a launch that no device does");
    const int before = failed;
    launch_counted();
    return before;
}
#elif LIBRARY == 2
typedef struct program { char options[256]; } *nvrtcProgram;
typedef int nvrtcResult;
static const char binary[] = "a binary for sm_90";

EXPORT const char *nvrtcGetErrorString(nvrtcResult result) { return result ? "NVRTC_ERROR" : "NVRTC_SUCCESS"; }
EXPORT nvrtcResult nvrtcVersion(int *major, int *minor) { return *major = 13, *minor = 0, 0; }
EXPORT nvrtcResult nvrtcGetNumSupportedArchs(int *count) { return *count = 3, 0; }
EXPORT nvrtcResult nvrtcGetSupportedArchs(int *list) { return list[0] = 80, list[1] = 90, list[2] = 120, 0; }
EXPORT nvrtcResult nvrtcCreateProgram(nvrtcProgram *program, const char *source, const char *name, int headers, const char *const *texts,
                                      const char *const *names) {
    if (!strstr(source, "earnest_") || !strstr(name, ".cu") || headers || texts || names) refuse("nvrtcCreateProgram", "arguments");
    return *program = calloc(1, sizeof **program), 0;
}
EXPORT nvrtcResult nvrtcDestroyProgram(nvrtcProgram *program) { return free(*program), *program = NULL, 0; }
EXPORT nvrtcResult nvrtcCompileProgram(nvrtcProgram program, int count, const char *const *options) {
    for (int i = 0; i < count; i++) strncat(program->options, options[i], sizeof program->options - strlen(program->options) - 1);
    return strstr(program->options, "--gpu-architecture=sm_90") ? 0 : 5;
}
static const char *words(nvrtcProgram program) {
    const char *of = getenv("MOCK_PTXAS");
    return of && strstr(program->options, "--ptxas-options=-v") ? of : "";
}
EXPORT nvrtcResult nvrtcGetProgramLogSize(nvrtcProgram program, size_t *size) { return *size = strlen(words(program)) + 1, 0; }
EXPORT nvrtcResult nvrtcGetProgramLog(nvrtcProgram program, char *log) { return strcpy(log, words(program)), 0; }
EXPORT nvrtcResult nvrtcGetCUBINSize(nvrtcProgram program, size_t *size) { return *size = sizeof binary, !program; }
EXPORT nvrtcResult nvrtcGetCUBIN(nvrtcProgram program, char *to) { return memcpy(to, binary, sizeof binary), !program; }
EXPORT nvrtcResult nvrtcGetPTXSize(nvrtcProgram program, size_t *size) { return *size = 0, !program; }
EXPORT nvrtcResult nvrtcGetPTX(nvrtcProgram program, char *to) { return *to = 0, !program; }
#else
typedef int cublasStatus_t;
typedef int cudaDataType_t;
typedef struct object { int kind; long left; } *cublasLtHandle_t, *cublasLtMatmulDesc_t, *cublasLtMatrixLayout_t, *cublasLtMatmulPreference_t;
typedef struct { uint64_t data[8]; } cublasLtMatmulAlgo_t;
typedef struct {
    cublasLtMatmulAlgo_t algo;
    size_t workspaceSize;
    cublasStatus_t state;
    float wavesCount;
    int reserved[4];
} cublasLtMatmulHeuristicResult_t;

enum { HANDLE = 21, DESCRIPTION, LAYOUT, PREFERENCE };
static int objects;
static void report(void) {
    if (objects) refuse("the end", "objects of cublasLt were not destroyed");
}
static cublasStatus_t make(struct object **to, int kind) {
    *to = calloc(1, sizeof **to);
    (*to)->kind = kind;
    return objects++, 0;
}
static void need(const char *call, struct object *object, int kind) {
    if (!object || object->kind != kind) refuse(call, "not such an object");
}
static cublasStatus_t destroy(const char *call, struct object *object, int kind) {
    need(call, object, kind);
    object->kind = 0;
    return objects--, 0;
}
EXPORT size_t cublasLtGetVersion(void) { return 130100; }
EXPORT cublasStatus_t cublasLtCreate(cublasLtHandle_t *handle) {
    static int begun;
    if (!begun++) atexit(report);
    const int status = number("MOCK_CUBLASLT", 0);
    return status ? status : make(handle, HANDLE);
}
EXPORT cublasStatus_t cublasLtDestroy(cublasLtHandle_t handle) { return destroy("cublasLtDestroy", handle, HANDLE); }
EXPORT cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t *to, int compute, cudaDataType_t scale) {
    if (compute != 68 || scale != 0) refuse("cublasLtMatmulDescCreate", "not CUBLAS_COMPUTE_32F with CUDA_R_32F");
    return make(to, DESCRIPTION);
}
EXPORT cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t to, int attribute, const void *value, size_t size) {
    need("cublasLtMatmulDescSetAttribute", to, DESCRIPTION);
    return attribute != 3 || size != 4 || *(const int32_t *)value != 1 ? 7 : 0;
}
EXPORT cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t it) { return destroy("cublasLtMatmulDescDestroy", it, DESCRIPTION); }
EXPORT cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t *to, cudaDataType_t type, uint64_t rows, uint64_t columns, int64_t left) {
    if ((type != 0 && type != 2 && type != 14) || !rows || !columns || left < (int64_t)rows) return 7;
    make(to, LAYOUT);
    return (*to)->left = left, 0;
}
EXPORT cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t it) { return destroy("cublasLtMatrixLayoutDestroy", it, LAYOUT); }
EXPORT cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t *to) { return make(to, PREFERENCE); }
EXPORT cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t to, int attribute, const void *value, size_t size) {
    need("cublasLtMatmulPreferenceSetAttribute", to, PREFERENCE);
    switch (attribute) {
    case 1: return size == 8 && *(const uint64_t *)value > 0 ? 0 : 7;
    case 3: return size == 4 && *(const uint32_t *)value < 8 ? 0 : 7;
    case 5: case 6: case 7: case 8: return size == 4 && *(const uint32_t *)value >= 1 && *(const uint32_t *)value <= 256 ? 0 : 7;
    default: return 7;
    }
}
EXPORT cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t it) { return destroy("cublasLtMatmulPreferenceDestroy", it, PREFERENCE); }
EXPORT cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t handle, cublasLtMatmulDesc_t description, cublasLtMatrixLayout_t a,
                                                     cublasLtMatrixLayout_t b, cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
                                                     cublasLtMatmulPreference_t preference, int requested,
                                                     cublasLtMatmulHeuristicResult_t results[], int *count) {
    need("heuristic", handle, HANDLE), need("heuristic", description, DESCRIPTION), need("heuristic", preference, PREFERENCE);
    need("heuristic", a, LAYOUT), need("heuristic", b, LAYOUT), need("heuristic", c, LAYOUT), need("heuristic", d, LAYOUT);
    if (requested != 1) return 7;
    memset(results, 0, sizeof *results);
    *count = 1;
    results->algo.data[7] = 4711;
    return 0;
}
EXPORT cublasStatus_t cublasLtMatmul(cublasLtHandle_t handle, cublasLtMatmulDesc_t description, const void *alpha, const void *a,
                                     cublasLtMatrixLayout_t a_layout, const void *b, cublasLtMatrixLayout_t b_layout, const void *beta,
                                     const void *c, cublasLtMatrixLayout_t c_layout, void *d, cublasLtMatrixLayout_t d_layout,
                                     const cublasLtMatmulAlgo_t *algorithm, void *workspace, size_t size, void *stream) {
    need("cublasLtMatmul", handle, HANDLE), need("cublasLtMatmul", description, DESCRIPTION);
    need("cublasLtMatmul", a_layout, LAYOUT), need("cublasLtMatmul", b_layout, LAYOUT);
    need("cublasLtMatmul", c_layout, LAYOUT), need("cublasLtMatmul", d_layout, LAYOUT);
    const float factor = *(const float *)alpha, keep = *(const float *)beta;
    if (factor != 1.0f || (keep != 0.0f && keep != 1.0f) || !a || !b || c != d || algorithm->data[7] != 4711 || !workspace || !size || !stream)
        refuse("cublasLtMatmul", "arguments");
    return 0;
}
#endif
