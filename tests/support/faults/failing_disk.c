/* A disk that fails, for LD_PRELOAD: from the nth call on, one system call on files whose path has a word returns EIO.

   FAILING_CALL is write, read or sync, FAILING_PATH the word, FAILING_FROM the number of the first call that fails.
   With the call "remount", the disk is mounted read-only from its nth write on: every write, and every opening of a
   file for writing, returns EROFS. */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

#define REMOUNT "remount"

static int calls; /* of those that fail from the nth on */

static int is_chosen(const char *path)
{
    const char *word = getenv("FAILING_PATH");
    return word && strstr(path, word);
}

static int fails(const char *call, int descriptor)
{
    const char *failing = getenv("FAILING_CALL"), *from = getenv("FAILING_FROM");
    char link[64], path[4096];
    int is_remount = failing && strcmp(failing, REMOUNT) == 0 && strcmp(call, "write") == 0;
    if (!failing || !from || (strcmp(call, failing) != 0 && !is_remount))
        return 0;
    snprintf(link, sizeof link, "/proc/self/fd/%d", descriptor);
    ssize_t length = readlink(link, path, sizeof path - 1);
    if (length < 0)
        return 0;
    path[length] = '\0';
    if (!is_chosen(path) || __atomic_add_fetch(&calls, 1, __ATOMIC_RELAXED) < atoi(from))
        return 0;
    errno = is_remount ? EROFS : EIO;
    return 1;
}

static int is_read_only(const char *path, int flags)
{
    const char *failing = getenv("FAILING_CALL"), *from = getenv("FAILING_FROM");
    if (!failing || !from || strcmp(failing, REMOUNT) != 0 || !is_chosen(path))
        return 0;
    if ((flags & O_ACCMODE) == O_RDONLY || __atomic_load_n(&calls, __ATOMIC_RELAXED) < atoi(from))
        return 0;
    errno = EROFS;
    return 1;
}

#define FAILING(kind, result, name, parameters, arguments)                   \
    result name parameters                                                   \
    {                                                                        \
        static result(*real) parameters;                                     \
        if (!real)                                                           \
            real = (result(*) parameters)dlsym(RTLD_NEXT, #name);            \
        return fails(kind, descriptor) ? (result)-1 : real arguments;        \
    }

FAILING("write", ssize_t, write, (int descriptor, const void *from, size_t size), (descriptor, from, size))
FAILING("write", ssize_t, pwrite, (int descriptor, const void *from, size_t size, off_t at), (descriptor, from, size, at))
FAILING("write", ssize_t, pwrite64, (int descriptor, const void *from, size_t size, off64_t at), (descriptor, from, size, at))
FAILING("read", ssize_t, pread, (int descriptor, void *to, size_t size, off_t at), (descriptor, to, size, at))
FAILING("read", ssize_t, pread64, (int descriptor, void *to, size_t size, off64_t at), (descriptor, to, size, at))
FAILING("sync", int, fsync, (int descriptor), (descriptor))
FAILING("sync", int, fdatasync, (int descriptor), (descriptor))

#define OPENING(name)                                                        \
    int name(const char *path, int flags, ...)                               \
    {                                                                        \
        static int (*real)(const char *, int, ...);                          \
        if (!real)                                                           \
            real = (int (*)(const char *, int, ...))dlsym(RTLD_NEXT, #name); \
        va_list more;                                                        \
        va_start(more, flags);                                               \
        mode_t mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(more, mode_t) : 0; \
        va_end(more);                                                        \
        return is_read_only(path, flags) ? -1 : real(path, flags, mode);     \
    }

OPENING(open)
OPENING(open64)
