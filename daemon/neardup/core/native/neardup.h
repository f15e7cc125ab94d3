/* neardup's native core: the functions that compiled code makes worth having, for any program that can call C.
 *
 * Every function is pure: it reads the buffers that it is given and writes to those that are its output.  It allocates
 * nothing unless its comment says so, keeps no state between two calls, and may run in any number of threads at once.
 * Lengths count elements unless a comment says bytes.  Numbers are in the order of the machine, which is little-endian.
 * Every length, offset and index that comes from outside is checked.
 *
 * A function returns a count or 0, or one of the negative codes below.  Beside each stands its reference in Python, which
 * explains the algorithm and gives the same result bit by bit; its name is in the comment.
 */
#ifndef NEARDUP_H
#define NEARDUP_H

#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)
#define ND_API __attribute__((visibility("default")))
#else
#define ND_API
#endif

enum nd_error {
    ND_UNSUPPORTED = -1, /* only the reference can handle this input */
    ND_INVALID = -2,     /* the input contradicts itself: a length, an offset or an encoding is wrong */
    ND_ROOM = -3,        /* the room for the output or the work is too small; the comment says what then happens */
    ND_NO_MEMORY = -4,
    ND_DAMAGED = -5      /* a file does not hold what was written to it, or cannot be read */
};

/* The version of this interface.  A program that was written for another one must not call the library. */
#define ND_INTERFACE 1
ND_API int nd_interface(void);

/* ==== fingerprint.c: texts and fingerprints ==================================================================== */

/* ==== alignment.c: what two texts share ======================================================================== */

/* ==== candidates.c: pairs of stories that are worth verifying ================================================== */

/* ==== segments.c: lookups in the files of the passage index ==================================================== */

/* ==== codes.c: nearest binary codes of vectors ================================================================= */

#endif
