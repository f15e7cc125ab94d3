/* A disk that fails, for LD_PRELOAD: from the nth call on, one system call on files whose path has a word returns EIO.

   FAILING_CALL is write, read or sync, FAILING_PATH the word, FAILING_FROM the number of the first call that fails. */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

static int fails(const char *call, int descriptor)
{
    static int calls;
    const char *failing = getenv("FAILING_CALL"), *word = getenv("FAILING_PATH"), *from = getenv("FAILING_FROM");
    char link[64], path[4096];
    if (!failing || !word || !from || strcmp(call, failing) != 0)
        return 0;
    snprintf(link, sizeof link, "/proc/self/fd/%d", descriptor);
    ssize_t length = readlink(link, path, sizeof path - 1);
    if (length < 0)
        return 0;
    path[length] = '\0';
    if (!strstr(path, word) || __atomic_add_fetch(&calls, 1, __ATOMIC_RELAXED) < atoi(from))
        return 0;
    errno = EIO;
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
