/* The nearest binary codes by Hamming distance: the bits that differ are counted, for each query and each code.
 *
 * A block of codes is compared with one query after the other, so that it stays in the nearest cache.  It is first
 * turned over: the same words of its codes then stand side by side, and one instruction takes LANES of them.  Most
 * blocks hold no code that is near enough, as the least distance of a block says.
 *
 * Some processors count the bits of a word (POPCNT, 2008), or of eight words at once (AVX-512 VPOPCNTDQ, 2017).  The
 * loops are the same for all, compiled for each, and chosen at run time.
 */
#include "internal.h"

enum {
    LANES = 8,
    BLOCK = 256, /* codes */
    MOST_WORDS = 512,
    ROOM = LANES * MOST_WORDS /* words of a block: 32 KiB */
};

struct scan {
    const uint64_t *queries;
    const uint64_t *codes;
    int64_t n_queries, n, words, first, most;
    int64_t *places;
    uint16_t *distances;
};

/* Turn a block of codes over: word w of code c goes to columns[w * stride + c].  The last LANES are filled with zeros.
 * With the words of LANES codes next to each other, GCC 12 makes lanes of words instead of codes, and measures in three
 * times the time. */
INLINE void turn_over(const uint64_t *codes, int64_t n, int64_t words, int64_t stride, uint64_t *columns) {
    for (int64_t word = 0; word < words; word++) {
        for (int64_t code = 0; code < n; code++) {
            columns[word * stride + code] = codes[code * words + word];
        }
        for (int64_t code = n; code % LANES; code++) {
            columns[word * stride + code] = 0;
        }
    }
}

/* Write the distances of a block of codes from a query, and of the zeros that fill it up; returns the codes' least. */
INLINE uint16_t measure(const uint64_t *query, const uint64_t *columns, int64_t n, int64_t words, int64_t stride,
                        uint16_t *measured) {
    for (int64_t start = 0; start < n; start += LANES) {
        uint64_t distances[LANES] = {0};
        for (int64_t word = 0; word < words; word++) {
            for (int lane = 0; lane < LANES; lane++) {
                uint64_t other = columns[word * stride + start + lane];
                distances[lane] += (uint64_t)__builtin_popcountll(query[word] ^ other);
            }
        }
        for (int lane = 0; lane < LANES; lane++) {
            measured[start + lane] = (uint16_t)distances[lane];
        }
    }
    uint16_t least = UINT16_MAX;
    for (int64_t code = 0; code < n; code++) {
        least = measured[code] < least ? measured[code] : least;
    }
    return least;
}

/* Put a code into the ascending row of a query, whose last one leaves it. */
static void insert(int64_t *places, uint16_t *distances, int64_t most, int64_t place, uint16_t distance) {
    int64_t at = most - 1;
    while (at > 0 && distances[at - 1] > distance) {
        places[at] = places[at - 1];
        distances[at] = distances[at - 1];
        at--;
    }
    places[at] = place;
    distances[at] = distance;
}

static void insert_near(const struct scan *scan, int64_t query, int64_t place, int64_t n, const uint16_t *measured) {
    int64_t *places = scan->places + query * scan->most;
    uint16_t *distances = scan->distances + query * scan->most;
    for (int64_t code = 0; code < n; code++) {
        if (measured[code] < distances[scan->most - 1]) {
            insert(places, distances, scan->most, place + code, measured[code]);
        }
    }
}

INLINE void scan_blocks(const struct scan *scan) {
    uint64_t columns[ROOM];
    uint16_t measured[BLOCK];
    int64_t words = scan->words;
    int64_t block = words > ROOM / BLOCK ? ROOM / words / LANES * LANES : BLOCK;
    for (int64_t start = 0; start < scan->n; start += block) {
        int64_t n = scan->n - start < block ? scan->n - start : block;
        turn_over(scan->codes + start * words, n, words, block, columns);
        for (int64_t query = 0; query < scan->n_queries; query++) {
            uint16_t least = measure(scan->queries + query * words, columns, n, words, block, measured);
            if (RARE(least < scan->distances[(query + 1) * scan->most - 1])) {
                insert_near(scan, query, scan->first + start, n, measured);
            }
        }
    }
}

static void scan_portably(const struct scan *scan) {
    scan_blocks(scan);
}

#if defined(__x86_64__)

__attribute__((target("popcnt"))) static void scan_with_popcnt(const struct scan *scan) {
    scan_blocks(scan);
}

__attribute__((target("popcnt,avx512f,avx512bw,avx512vl,avx512vpopcntdq"))) static void scan_with_avx512(
    const struct scan *scan) {
    scan_blocks(scan);
}

static void scan_fast(const struct scan *scan) {
    if (__builtin_cpu_supports("avx512vpopcntdq") && __builtin_cpu_supports("avx512bw") &&
        __builtin_cpu_supports("avx512vl")) {
        scan_with_avx512(scan);
    } else if (__builtin_cpu_supports("popcnt")) {
        scan_with_popcnt(scan);
    } else {
        scan_portably(scan);
    }
}

#else

static void scan_fast(const struct scan *scan) {
    scan_portably(scan);
}

#endif

int64_t nd_scan_codes(const uint64_t *queries, int64_t n_queries, const uint64_t *codes, int64_t n, int64_t words,
                      int64_t first, int64_t most, int64_t *places, uint16_t *distances) {
    if (n_queries < 0 || n < 0 || words < 1 || words > MOST_WORDS || most < 1 || first < 0 || first > INT64_MAX - n) {
        return ND_INVALID;
    }
    struct scan scan = {queries, codes, n_queries, n, words, first, most, places, distances};
    scan_fast(&scan);
    return 0;
}
