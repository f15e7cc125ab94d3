/* Lookups in the segments of the passage index and among postings in memory, and the two directions between postings
 * and the bytes of a segment.
 *
 * A lookup reads an entry of the directory, which says where the bucket of a hash begins and ends, and searches the low
 * bits of the bucket's hashes by halving.  Blocks are read with pread: with 1,000,000 stories that takes a third of the
 * time of a mapping's page faults, and no memory.  A damaged or unreadable block is an answer, and no signal that ends
 * the process; what a block says is believed only within the bounds of the file.
 */
#define _POSIX_C_SOURCE 200809L
#define _FILE_OFFSET_BITS 64

#include "internal.h"

#include <errno.h>
#include <stdbool.h>
#include <unistd.h>

#define NUMBER_LIMIT ((uint64_t)1 << 32)
#define PLACE_LIMIT ((uint64_t)1 << 40)

/* ---- XXH64 of a block, seed 0 (https://github.com/Cyan4973/xxHash/blob/dev/doc/xxhash_spec.md) ---- */

static const uint64_t P1 = 0x9E3779B185EBCA87u;
static const uint64_t P2 = 0xC2B2AE3D27D4EB4Fu;
static const uint64_t P3 = 0x165667B19E3779F9u;
static const uint64_t P4 = 0x85EBCA77C2B2AE63u;

enum { LANES = 4 };

INLINE uint64_t rotated(uint64_t word, int bits) {
    return word << bits | word >> (64 - bits);
}

INLINE uint64_t lane_round(uint64_t lane, uint64_t word) {
    return rotated(lane + word * P2, 31) * P1;
}

static uint64_t block_checksum(const uint8_t *block) {
    uint64_t lanes[LANES] = {P1 + P2, P2, 0, 0 - P1};
    for (const uint8_t *at = block; at < block + ND_SEGMENT_BLOCK; at += sizeof(lanes)) {
        uint64_t words[LANES];
        memcpy(words, at, sizeof(words));
        for (int lane = 0; lane < LANES; lane++) {
            lanes[lane] = lane_round(lanes[lane], words[lane]);
        }
    }
    uint64_t found = rotated(lanes[0], 1) + rotated(lanes[1], 7) + rotated(lanes[2], 12) + rotated(lanes[3], 18);
    for (int lane = 0; lane < LANES; lane++) {
        found = (found ^ lane_round(0, lanes[lane])) * P1 + P4;
    }
    found += ND_SEGMENT_BLOCK;
    found = (found ^ found >> 33) * P2;
    found = (found ^ found >> 29) * P3;
    return found ^ found >> 32;
}

int64_t nd_block_checksums(const uint8_t *content, int64_t size, uint64_t *checksums) {
    if (size < 0 || size % ND_SEGMENT_BLOCK) {
        return ND_INVALID;
    }
    for (int64_t block = 0; block < size / ND_SEGMENT_BLOCK; block++) {
        checksums[block] = block_checksum(content + block * ND_SEGMENT_BLOCK);
    }
    return 0;
}

/* ---- Integers of 1 to 4 little-endian bytes ---- */

INLINE uint32_t get(const uint8_t *place, int size) {
    uint32_t value = place[0];
    for (int byte = 1; byte < size; byte++) {
        value |= (uint32_t)place[byte] << (8 * byte);
    }
    return value;
}

INLINE void put(uint8_t *place, uint32_t value, int size) {
    for (int byte = 0; byte < size; byte++) {
        place[byte] = (uint8_t)(value >> (8 * byte));
    }
}

static bool is_coding(const struct nd_coding *coding) {
    return coding->bucket_bits >= 1 && coding->bucket_bits <= 31 && coding->low_bytes >= 1 && coding->low_bytes <= 4 &&
           coding->number_bytes >= 1 && coding->number_bytes <= 4;
}

INLINE int low_bits(const struct nd_coding *coding) {
    return 32 - coding->bucket_bits;
}

INLINE uint32_t low_mask(const struct nd_coding *coding) {
    return ((uint32_t)1 << low_bits(coding)) - 1;
}

/* ---- From keys to bytes ---- */

/* Write the postings of a bucket; returns bits that had no room, 0 if all had. */
static uint64_t put_bucket(const struct nd_coding *coding, const uint64_t *keys, int64_t n, uint8_t *content) {
    uint32_t mask = low_mask(coding);
    int low_bytes = coding->low_bytes;
    int number_bytes = coding->number_bytes;
    uint64_t left = 0;
    for (int64_t key = 0; key < n; key++) {
        uint32_t hash = (uint32_t)(keys[key] >> 32);
        put(content, hash, low_bytes); /* with bits of the bucket, where the low bits leave room for them */
        left |= (uint64_t)(hash & mask) >> (8 * low_bytes);
        content += low_bytes;
    }
    for (int64_t key = 0; key < n; key++) {
        uint64_t number = (keys[key] & 0xFFFFFFFFu) - coding->first; /* all upper bits are set if it is below `first` */
        put(content, (uint32_t)number, number_bytes);
        left |= number >> (8 * number_bytes);
        content += number_bytes;
    }
    return left;
}

/* Whether a coding has these buckets, and `size` bytes are `n` of its postings. */
static bool fits(const struct nd_coding *coding, int64_t first_bucket, int64_t buckets, int64_t n, int64_t size) {
    if (!is_coding(coding) || n < 0 || (uint64_t)n >= NUMBER_LIMIT || first_bucket < 0 || buckets < 0) {
        return false;
    }
    int64_t all = (int64_t)1 << coding->bucket_bits;
    return buckets <= all && first_bucket <= all - buckets && size == n * (coding->low_bytes + coding->number_bytes);
}

int64_t nd_encode_postings(const struct nd_coding *coding, const uint64_t *keys, int64_t n, int64_t first_bucket,
                           int64_t buckets, uint32_t *offsets, uint8_t *content, int64_t size) {
    if (!fits(coding, first_bucket, buckets, n, size)) {
        return ND_INVALID;
    }
    int shift = 32 + low_bits(coding);
    int width = coding->low_bytes + coding->number_bytes;
    int64_t start = 0;
    uint64_t left = 0;
    for (int64_t bucket = 0; bucket < buckets; bucket++) {
        int64_t stop = start;
        while (stop < n && keys[stop] >> shift == (uint64_t)(first_bucket + bucket)) {
            stop++;
        }
        offsets[bucket] = (uint32_t)start;
        left |= put_bucket(coding, keys + start, stop - start, content + start * width);
        start = stop;
    }
    return start < n || left ? ND_INVALID : 0;
}

/* ---- From bytes to keys ---- */

/* Read the postings of a bucket; returns bits that no number can have, 0 if there are none. */
static uint64_t get_bucket(const struct nd_coding *coding, const uint8_t *content, int64_t n, uint64_t bucket,
                           uint64_t *keys) {
    int bits = low_bits(coding);
    const uint8_t *numbers = content + n * coding->low_bytes;
    uint64_t wrong = 0;
    for (int64_t key = 0; key < n; key++) {
        uint64_t low = get(content, coding->low_bytes);
        uint64_t number = (uint64_t)coding->first + get(numbers, coding->number_bytes);
        keys[key] = (bucket << bits | low) << 32 | number;
        wrong |= number >> 32;
        content += coding->low_bytes;
        numbers += coding->number_bytes;
    }
    return wrong;
}

int64_t nd_decode_postings(const struct nd_coding *coding, const uint8_t *content, int64_t size, int64_t first_bucket,
                           const uint32_t *offsets, int64_t buckets, uint64_t *keys, int64_t n) {
    if (!fits(coding, first_bucket, buckets, n, size) || (int64_t)offsets[buckets] - offsets[0] != n) {
        return ND_INVALID;
    }
    int width = coding->low_bytes + coding->number_bytes;
    uint64_t wrong = 0;
    for (int64_t bucket = 0; bucket < buckets; bucket++) {
        if (RARE(offsets[bucket + 1] < offsets[bucket] || offsets[bucket + 1] > offsets[buckets])) {
            return ND_INVALID;
        }
        int64_t start = (int64_t)offsets[bucket] - offsets[0];
        int64_t in_bucket = (int64_t)offsets[bucket + 1] - offsets[bucket];
        uint64_t nth = (uint64_t)(first_bucket + bucket);
        wrong |= get_bucket(coding, content + start * width, in_bucket, nth, keys + start);
    }
    return wrong ? ND_INVALID : 0;
}

/* ---- Reading blocks ---- */

enum { OFFSET_BYTES = 4 }; /* of an entry of the directory */

/* Up to two adjacent blocks of the file: those from `first` to before `stop`, 0 being the header. */
struct window {
    uint64_t first, stop;
    uint8_t content[2 * ND_SEGMENT_BLOCK];
};

static bool read_whole(int descriptor, uint8_t *content, size_t size, uint64_t place) {
    while (size) {
        ssize_t got = pread(descriptor, content, size, (off_t)place);
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got <= 0) {
            return false;
        }
        content += got;
        size -= (size_t)got;
        place += (uint64_t)got;
    }
    return true;
}

/* Let a window hold other blocks; false if they are damaged, or not among those that have checksums. */
static bool read_blocks(const struct nd_segment *segment, uint64_t first, uint64_t stop, struct window *window) {
    window->first = window->stop = 0;
    if (first < 1 || stop - 1 > segment->blocks) {
        return false;
    }
    size_t size = (stop - first) * ND_SEGMENT_BLOCK;
    if (!read_whole(segment->descriptor, window->content, size, first * ND_SEGMENT_BLOCK)) {
        return false;
    }
    for (uint64_t block = first; block < stop; block++) {
        uint8_t *verified = segment->verified + block - 1;
        if (!__atomic_load_n(verified, __ATOMIC_RELAXED)) {
            if (block_checksum(window->content + (block - first) * ND_SEGMENT_BLOCK) != segment->checksums[block - 1]) {
                return false;
            }
            __atomic_store_n(verified, 1, __ATOMIC_RELAXED);
        }
    }
    window->first = first;
    window->stop = stop;
    return true;
}

/* Some bytes of the file, 1 to ND_SEGMENT_BLOCK, in a window that is made to hold them; NULL if damaged. */
INLINE const uint8_t *bytes_at(const struct nd_segment *segment, uint64_t place, uint64_t size, struct window *window) {
    uint64_t first = place / ND_SEGMENT_BLOCK;
    uint64_t stop = (place + size - 1) / ND_SEGMENT_BLOCK + 1;
    if ((first < window->first || stop > window->stop) && !read_blocks(segment, first, stop, window)) {
        return NULL;
    }
    return window->content + (place - window->first * ND_SEGMENT_BLOCK);
}

static bool is_segment(const struct nd_segment *segment) {
    return is_coding(&segment->coding) && segment->postings < NUMBER_LIMIT && segment->postings_start <= PLACE_LIMIT &&
           segment->blocks <= PLACE_LIMIT;
}

/* ---- Looking up ---- */

struct bucket {
    uint64_t start; /* byte of the file */
    uint64_t size;  /* postings */
};

static bool find_bucket(const struct nd_segment *segment, uint32_t hash, struct window *directory,
                        struct bucket *bucket) {
    uint64_t entry = ND_SEGMENT_BLOCK + (uint64_t)OFFSET_BYTES * (hash >> low_bits(&segment->coding));
    const uint8_t *offsets = bytes_at(segment, entry, 2 * OFFSET_BYTES, directory);
    if (!offsets) {
        return false;
    }
    uint64_t start = get(offsets, OFFSET_BYTES);
    uint64_t stop = get(offsets + OFFSET_BYTES, OFFSET_BYTES);
    if (stop < start || stop > segment->postings) { /* changed since it was verified */
        return false;
    }
    bucket->start = segment->postings_start +
                    start * (uint64_t)(segment->coding.low_bytes + segment->coding.number_bytes);
    bucket->size = stop - start;
    return true;
}

/* How many postings of a bucket, whose low bytes begin at `lows`, have low bits less than `low`.  The bytes may have
 * bits of the bucket, too, which are not in `mask`. */
INLINE uint64_t first_at_least(const uint8_t *lows, uint64_t size, uint64_t low, uint32_t mask, int width) {
    uint64_t start = 0;
    uint64_t stop = size;
    while (start < stop) {
        uint64_t middle = (start + stop) / 2;
        if ((get(lows + middle * (uint64_t)width, width) & mask) < low) {
            start = middle + 1;
        } else {
            stop = middle;
        }
    }
    return start;
}

/* As first_at_least, for a bucket larger than a block, which is read where it is looked at; false if damaged. */
static bool first_in_blocks(const struct nd_segment *segment, const struct bucket *bucket, uint64_t low,
                            struct window *window, uint64_t *found) {
    int width = segment->coding.low_bytes;
    uint32_t mask = low_mask(&segment->coding);
    uint64_t start = 0;
    uint64_t stop = bucket->size;
    while (start < stop) {
        uint64_t middle = (start + stop) / 2;
        const uint8_t *place = bytes_at(segment, bucket->start + middle * (uint64_t)width, (uint64_t)width, window);
        if (!place) {
            return false;
        }
        if ((get(place, width) & mask) < low) {
            start = middle + 1;
        } else {
            stop = middle;
        }
    }
    *found = start;
    return true;
}

static bool find_in_bucket(const struct nd_segment *segment, const struct bucket *bucket, uint32_t low,
                           struct window *window, uint64_t *first, uint64_t *last) {
    int width = segment->coding.low_bytes;
    uint64_t size = bucket->size * (uint64_t)width;
    if (size > ND_SEGMENT_BLOCK) {
        return first_in_blocks(segment, bucket, low, window, first) &&
               first_in_blocks(segment, bucket, (uint64_t)low + 1, window, last);
    }
    *first = *last = 0;
    if (!size) {
        return true;
    }
    const uint8_t *lows = bytes_at(segment, bucket->start, size, window);
    if (!lows) {
        return false;
    }
    uint32_t mask = low_mask(&segment->coding);
    *first = first_at_least(lows, bucket->size, low, mask, width);
    *last = first_at_least(lows, bucket->size, (uint64_t)low + 1, mask, width);
    return true;
}

int64_t nd_find_postings(const struct nd_segment *segment, const uint32_t *hashes, int64_t n, int64_t *places,
                         int64_t *counts) {
    if (n < 0) {
        return ND_INVALID;
    }
    if (!is_segment(segment)) {
        return ND_DAMAGED;
    }
    const struct nd_coding *coding = &segment->coding;
    uint32_t mask = low_mask(coding);
    struct window directory, postings;
    directory.first = directory.stop = postings.first = postings.stop = 0;
    for (int64_t hash = 0; hash < n; hash++) {
        struct bucket bucket;
        uint64_t first, last;
        if (!find_bucket(segment, hashes[hash], &directory, &bucket) ||
            !find_in_bucket(segment, &bucket, hashes[hash] & mask, &postings, &first, &last)) {
            return ND_DAMAGED;
        }
        places[hash] = (int64_t)(bucket.start + bucket.size * (uint64_t)coding->low_bytes +
                                 first * (uint64_t)coding->number_bytes);
        counts[hash] = (int64_t)(last - first);
    }
    return 0;
}

int64_t nd_read_numbers(const struct nd_segment *segment, const int64_t *places, const int64_t *counts, int64_t n,
                        uint32_t *numbers, int64_t room) {
    if (n < 0) {
        return ND_INVALID;
    }
    if (!is_segment(segment)) {
        return ND_DAMAGED;
    }
    int width = segment->coding.number_bytes;
    struct window window;
    window.first = window.stop = 0;
    int64_t written = 0;
    for (int64_t list = 0; list < n; list++) {
        if (counts[list] < 0 || counts[list] > room - written || places[list] < 0 ||
            (uint64_t)places[list] > 2 * PLACE_LIMIT) {
            return ND_INVALID;
        }
        for (int64_t nth = 0; nth < counts[list]; nth++) {
            uint64_t place = (uint64_t)places[list] + (uint64_t)nth * (uint64_t)width;
            const uint8_t *bytes = bytes_at(segment, place, (uint64_t)width, &window);
            if (!bytes) {
                return ND_DAMAGED;
            }
            uint64_t number = (uint64_t)segment->coding.first + get(bytes, width);
            if (number >= NUMBER_LIMIT) {
                return ND_DAMAGED;
            }
            numbers[written++] = (uint32_t)number;
        }
    }
    return written == room ? 0 : ND_INVALID;
}

/* ---- Postings in memory ---- */

/* How many keys are less than `key`: an exponential search from a place on (Bentley and Yao, IPL 1976). */
static int64_t keys_before(const uint64_t *keys, int64_t n, uint64_t key, int64_t start) {
    int64_t low = start;
    int64_t high = start;
    int64_t step = 1;
    while (high < n && keys[high] < key) {
        low = high + 1;
        high = n - high < step ? n : high + step;
        step *= 2;
    }
    while (low > 0 && keys[low - 1] >= key) {
        high = low - 1;
        low = low < step ? 0 : low - step;
        step *= 2;
    }
    while (low < high) {
        int64_t middle = (low + high) / 2;
        if (keys[middle] < key) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

/* The search begins where the key would be if hashes were spread evenly, which they nearly are. */
int64_t nd_find_keys(const uint64_t *keys, int64_t n_keys, const uint32_t *hashes, int64_t n, int64_t *places,
                     int64_t *counts) {
    if (n < 0 || n_keys < 0 || (uint64_t)n_keys >= NUMBER_LIMIT) {
        return ND_INVALID;
    }
    for (int64_t nth = 0; nth < n; nth++) {
        uint64_t hash = hashes[nth];
        int64_t expected = (int64_t)(hash * (uint64_t)n_keys >> 32);
        int64_t first = keys_before(keys, n_keys, hash << 32, expected);
        int64_t last = first;
        if (first < n_keys && keys[first] >> 32 == hash) {
            last = hash == UINT32_MAX ? n_keys : keys_before(keys, n_keys, (hash + 1) << 32, first);
        }
        places[nth] = first;
        counts[nth] = last - first;
    }
    return 0;
}

INLINE uint32_t filter_byte(uint32_t hash) {
    return hash >> (ND_UNUSED_BITS + 3);
}

INLINE uint8_t filter_bit(uint32_t hash) {
    return (uint8_t)(1 << (hash >> ND_UNUSED_BITS & 7));
}

int64_t nd_put_in_filter(uint8_t *filter, int64_t size, const uint32_t *hashes, int64_t n) {
    if (n < 0 || size != ND_FILTER_BYTES) {
        return ND_INVALID;
    }
    for (int64_t nth = 0; nth < n; nth++) {
        uint8_t *byte = filter + filter_byte(hashes[nth]);
        __atomic_store_n(byte, *byte | filter_bit(hashes[nth]), __ATOMIC_RELAXED);
    }
    return 0;
}

int64_t nd_filter_may_hold(const uint8_t *filter, int64_t size, const uint32_t *hashes, int64_t n, uint8_t *held) {
    if (n < 0 || size != ND_FILTER_BYTES) {
        return ND_INVALID;
    }
    for (int64_t nth = 0; nth < n; nth++) {
        uint8_t byte = __atomic_load_n(filter + filter_byte(hashes[nth]), __ATOMIC_RELAXED);
        held[nth] = (byte & filter_bit(hashes[nth])) != 0;
    }
    return 0;
}
