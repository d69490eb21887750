/* Fails the n-th call that touches a file below FAULTS_FOLDER. Loaded with LD_PRELOAD; armed from inside. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

static int calls, at, code, lasting;

/* Fail call number `n` with `error` (0: write half of it), and all after it if `on`. 0 disarms. */
void faults_arm(int n, int error, int on) { calls = 0; at = n; code = error; lasting = on; }
int faults_calls(void) { return calls; }

static int below(const char *path) {
    const char *folder = getenv("FAULTS_FOLDER");
    return folder && path && !strncmp(path, folder, strlen(folder));
}

static int ours(int fd) {
    char link[64], path[4096];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t n = readlink(link, path, sizeof path - 1);
    if (n < 0) return 0;
    path[n] = 0;
    return below(path);
}

/* Counts a call; whether it must fail. */
static int hit(int touches) {
    if (!touches) return 0;
    calls++;
    return at && (calls == at || (lasting && calls > at));
}

#define NEXT(name) __typeof__(&name) next = (__typeof__(&name))dlsym(RTLD_NEXT, #name)
#define FAIL do { errno = code ? code : EIO; return -1; } while (0)

#define WRITES(name, off) \
    ssize_t name(int fd, const void *data, size_t size, off offset) { \
        NEXT(name); \
        if (hit(ours(fd))) { if (code) FAIL; return next(fd, data, size / 2, offset); } \
        return next(fd, data, size, offset); \
    }
WRITES(pwrite, off_t)
WRITES(pwrite64, off64_t)

#define READS(name, off) \
    ssize_t name(int fd, void *data, size_t size, off offset) { \
        NEXT(name); \
        if (hit(ours(fd))) FAIL; \
        return next(fd, data, size, offset); \
    }
READS(pread, off_t)
READS(pread64, off64_t)

#define ON_FD(name, args, pass) \
    int name args { NEXT(name); if (hit(ours(fd))) FAIL; return next pass; }
ON_FD(fsync, (int fd), (fd))
ON_FD(fdatasync, (int fd), (fd))
ON_FD(ftruncate, (int fd, off_t size), (fd, size))
ON_FD(ftruncate64, (int fd, off64_t size), (fd, size))

ssize_t write(int fd, const void *data, size_t size) {
    NEXT(write);
    if (hit(ours(fd))) { if (code) FAIL; return next(fd, data, size / 2); }
    return next(fd, data, size);
}
ssize_t read(int fd, void *data, size_t size) { NEXT(read); if (hit(ours(fd))) FAIL; return next(fd, data, size); }
int rename(const char *old, const char *new) { NEXT(rename); if (hit(below(old))) FAIL; return next(old, new); }

int unlink(const char *path) { NEXT(unlink); if (hit(below(path))) FAIL; return next(path); }

#define OPENS(name) \
    int name(const char *path, int flags, ...) { \
        NEXT(name); \
        va_list rest; va_start(rest, flags); int mode = va_arg(rest, int); va_end(rest); \
        if (hit(below(path))) FAIL; \
        return next(path, flags, mode); \
    }
OPENS(open)
OPENS(open64)
