/* Lookups in the segments of the passage index and among postings in memory, and the two directions between postings
 * and the bytes of a segment.
 *
 * A lookup reads an entry of the directory, which says where the bucket of a hash begins and ends, then the bucket's
 * heads, which say which of its postings have the head of the hash, and searches their low bits by halving.  Blocks are
 * read with pread: with 1,000,000 stories that takes a third of the time of a mapping's page faults, and no memory.  A
 * damaged or unreadable block is an answer, and no signal that ends the process; what a block says is believed only
 * within the bounds of the file.
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

/* ---- Integers of some little-endian bytes, and of 1 to 32 bits, from the lowest bit of a byte on ---- */

INLINE uint64_t get(const uint8_t *place, uint64_t size) {
    uint64_t value = 0;
    for (uint64_t byte = 0; byte < size; byte++) {
        value |= (uint64_t)place[byte] << (8 * byte);
    }
    return value;
}

/* How many bytes some bits are in, the first of which has this place; 0 if they are none. */
INLINE uint64_t bytes_of(uint64_t bit, uint64_t bits) {
    return (bit % 8 + bits + 7) / 8;
}

INLINE uint32_t get_bits(const uint8_t *content, uint64_t bit, int bits) {
    uint64_t value = get(content + bit / 8, bytes_of(bit, (uint64_t)bits)) >> bit % 8;
    return (uint32_t)(value & (((uint64_t)1 << bits) - 1));
}

/* The bits are 0 before. */
INLINE void put_bits(uint8_t *content, uint64_t bit, uint32_t value, int bits) {
    uint64_t shifted = (uint64_t)value << bit % 8;
    uint8_t *place = content + bit / 8;
    for (uint64_t byte = 0; byte < bytes_of(bit, (uint64_t)bits); byte++) {
        place[byte] |= (uint8_t)(shifted >> (8 * byte));
    }
}

/* ---- The parts of a bucket ---- */

enum { ENTRY_BITS = 32, CHUNK = 32 /* bits of heads that are read at once */ };

static bool is_coding(const struct nd_coding *coding) {
    return coding->bucket_bits >= 1 && coding->bucket_bits <= 25 && coding->head_bits >= 0 && coding->head_bits <= 6 &&
           coding->number_bits >= 1 && coding->number_bits <= 32;
}

INLINE int low_bits(const struct nd_coding *coding) {
    return 32 - coding->bucket_bits - coding->head_bits;
}

INLINE uint32_t low_of(const struct nd_coding *coding, uint32_t hash) {
    return hash & (((uint32_t)1 << low_bits(coding)) - 1);
}

INLINE uint64_t head_of(const struct nd_coding *coding, uint32_t hash) {
    return hash >> low_bits(coding) & (((uint32_t)1 << coding->head_bits) - 1);
}

/* Where the parts of a bucket with `size` postings begin, as bits after the bucket's beginning.  The heads are first:
 * ones and zeros, or if there is room for it, a table. */
struct bucket {
    uint64_t size, lows, numbers;
    uint64_t heads;
    bool has_table;
};

INLINE struct bucket bucket_of(const struct nd_coding *coding, uint64_t size) {
    uint64_t heads = (uint64_t)1 << coding->head_bits;
    uint64_t lows = size + heads;
    return (struct bucket){size, lows, lows + size * (uint64_t)low_bits(coding), heads, size >= ENTRY_BITS * heads};
}

/* The byte where a bucket begins, counted from where the postings begin.  There is room for the 7 bits at most that a
 * bucket leaves of its last byte. */
INLINE uint64_t place_of(const struct nd_coding *coding, uint64_t bucket, uint64_t preceding) {
    uint64_t heads = (uint64_t)1 << coding->head_bits;
    return (preceding * (uint64_t)(1 + low_bits(coding) + coding->number_bits) + bucket * (heads + 7)) / 8;
}

/* Whether a coding has these buckets, and they take `size` bytes with n postings that `preceding` others precede. */
static bool fits(const struct nd_coding *coding, int64_t first_bucket, int64_t buckets, int64_t preceding, int64_t n,
                 int64_t size) {
    if (!is_coding(coding) || first_bucket < 0 || buckets < 0 || preceding < 0 || n < 0 ||
        (uint64_t)preceding >= NUMBER_LIMIT || (uint64_t)n >= NUMBER_LIMIT - (uint64_t)preceding) {
        return false;
    }
    int64_t all = (int64_t)1 << coding->bucket_bits;
    return buckets <= all && first_bucket <= all - buckets && size >= 0 &&
           (uint64_t)size == place_of(coding, (uint64_t)(first_bucket + buckets), (uint64_t)(preceding + n)) -
                                 place_of(coding, (uint64_t)first_bucket, (uint64_t)preceding);
}

/* ---- From keys to bytes ---- */

static void put_heads(const struct nd_coding *coding, const uint64_t *keys, struct bucket bucket, uint8_t *content) {
    if (!bucket.has_table) {
        for (uint64_t nth = 0; nth < bucket.size; nth++) {
            put_bits(content, nth + head_of(coding, (uint32_t)(keys[nth] >> 32)), 1, 1);
        }
        return;
    }
    uint64_t nth = 0;
    for (uint64_t head = 0; head < bucket.heads; head++) {
        while (nth < bucket.size && head_of(coding, (uint32_t)(keys[nth] >> 32)) < head) {
            nth++;
        }
        put_bits(content, head * ENTRY_BITS, (uint32_t)nth, ENTRY_BITS);
    }
}

/* Write the postings of a bucket, whose keys ascend, into zeros; returns bits that had no room, 0 if all had. */
static uint64_t put_bucket(const struct nd_coding *coding, const uint64_t *keys, uint64_t n, uint8_t *content) {
    struct bucket bucket = bucket_of(coding, n);
    int bits = low_bits(coding);
    int number_bits = coding->number_bits;
    uint64_t left = 0;
    put_heads(coding, keys, bucket, content);
    for (uint64_t nth = 0; nth < n; nth++) {
        put_bits(content, bucket.lows + nth * (uint64_t)bits, low_of(coding, (uint32_t)(keys[nth] >> 32)), bits);
    }
    for (uint64_t nth = 0; nth < n; nth++) {
        uint64_t number = (keys[nth] & 0xFFFFFFFFu) - coding->first; /* all upper bits are set if it is below `first` */
        uint64_t room = ((uint64_t)1 << number_bits) - 1;
        put_bits(content, bucket.numbers + nth * (uint64_t)number_bits, (uint32_t)(number & room), number_bits);
        left |= number & ~room;
    }
    return left;
}

int64_t nd_encode_postings(const struct nd_coding *coding, const uint64_t *keys, int64_t n, int64_t first_bucket,
                           int64_t buckets, int64_t preceding, uint32_t *offsets, uint8_t *content, int64_t size) {
    if (!fits(coding, first_bucket, buckets, preceding, n, size)) {
        return ND_INVALID;
    }
    memset(content, 0, (size_t)size);
    int shift = 64 - coding->bucket_bits;
    uint64_t begin = place_of(coding, (uint64_t)first_bucket, (uint64_t)preceding);
    int64_t start = 0;
    uint64_t left = 0;
    for (int64_t nth = first_bucket; nth < first_bucket + buckets; nth++) {
        int64_t stop = start;
        while (stop < n && keys[stop] >> shift == (uint64_t)nth) {
            if (RARE(stop && keys[stop] < keys[stop - 1])) {
                return ND_INVALID;
            }
            stop++;
        }
        uint64_t place = place_of(coding, (uint64_t)nth, (uint64_t)(preceding + start));
        offsets[nth - first_bucket] = (uint32_t)(preceding + start);
        if (stop > start) {
            left |= put_bucket(coding, keys + start, (uint64_t)(stop - start), content + (place - begin));
        }
        start = stop;
    }
    return start < n || left ? ND_INVALID : 0;
}

/* ---- From bytes to keys ---- */

/* Read the table of a bucket: the head of each posting; false if it descends, or has more postings than the bucket. */
static bool get_table(const uint8_t *content, struct bucket bucket, uint64_t *heads) {
    uint64_t nth = 0;
    if (get_bits(content, 0, ENTRY_BITS)) {
        return false;
    }
    for (uint64_t head = 0; head < bucket.heads; head++) {
        uint64_t next = head + 1;
        uint64_t stop = next < bucket.heads ? get_bits(content, next * ENTRY_BITS, ENTRY_BITS) : bucket.size;
        if (stop < nth || stop > bucket.size) {
            return false;
        }
        while (nth < stop) {
            heads[nth++] = head;
        }
    }
    return true;
}

/* Some of the bits of heads, of which there are `bits`, from a place on. */
INLINE uint32_t get_chunk(const uint8_t *content, uint64_t bits, uint64_t place) {
    return get_bits(content, place, bits - place < CHUNK ? (int)(bits - place) : CHUNK);
}

/* Read the heads of a bucket's postings; false if they are not as many, or one of them is too large. */
static bool get_heads(const uint8_t *content, struct bucket bucket, uint64_t *heads) {
    if (bucket.has_table) {
        return get_table(content, bucket, heads);
    }
    uint64_t nth = 0;
    for (uint64_t place = 0; place < bucket.lows; place += CHUNK) {
        for (uint32_t ones = get_chunk(content, bucket.lows, place); ones; ones &= ones - 1) {
            uint64_t head = place + (uint64_t)__builtin_ctz(ones) - nth;
            if (nth == bucket.size || head >= bucket.heads) {
                return false;
            }
            heads[nth++] = head;
        }
    }
    return nth == bucket.size;
}

/* Read the postings of a bucket; false if there are no such ones. */
static bool get_bucket(const struct nd_coding *coding, const uint8_t *content, uint64_t n, uint64_t nth_bucket,
                       uint64_t *keys) {
    struct bucket bucket = bucket_of(coding, n);
    int bits = low_bits(coding);
    int number_bits = coding->number_bits;
    uint64_t wrong = 0;
    if (!get_heads(content, bucket, keys)) {
        return false;
    }
    for (uint64_t nth = 0; nth < n; nth++) {
        uint64_t low = get_bits(content, bucket.lows + nth * (uint64_t)bits, bits);
        uint64_t number = (uint64_t)coding->first +
                          get_bits(content, bucket.numbers + nth * (uint64_t)number_bits, number_bits);
        keys[nth] = ((nth_bucket << coding->head_bits | keys[nth]) << bits | low) << 32 | number;
        wrong |= number >> 32;
    }
    return !wrong;
}

int64_t nd_decode_postings(const struct nd_coding *coding, const uint8_t *content, int64_t size, int64_t first_bucket,
                           const uint32_t *offsets, int64_t buckets, uint64_t *keys, int64_t n) {
    if (buckets < 0 || (int64_t)offsets[buckets] - offsets[0] != n ||
        !fits(coding, first_bucket, buckets, offsets[0], n, size)) {
        return ND_INVALID;
    }
    uint64_t begin = place_of(coding, (uint64_t)first_bucket, offsets[0]);
    for (int64_t nth = 0; nth < buckets; nth++) {
        if (RARE(offsets[nth + 1] < offsets[nth] || offsets[nth + 1] > offsets[buckets])) {
            return ND_INVALID;
        }
        uint64_t in_bucket = offsets[nth + 1] - offsets[nth];
        uint64_t bucket = (uint64_t)(first_bucket + nth);
        const uint8_t *place = content + (place_of(coding, bucket, offsets[nth]) - begin);
        if (in_bucket && RARE(!get_bucket(coding, place, in_bucket, bucket, keys + (offsets[nth] - offsets[0])))) {
            return ND_INVALID;
        }
    }
    return 0;
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

/* How many postings precede a bucket and the next one; false if damaged. */
static bool find_bucket(const struct nd_segment *segment, uint64_t bucket, struct window *directory,
                        uint64_t *preceding, uint64_t *stop) {
    const uint8_t *offsets = bytes_at(segment, ND_SEGMENT_BLOCK + OFFSET_BYTES * bucket, 2 * OFFSET_BYTES, directory);
    if (!offsets) {
        return false;
    }
    *preceding = get(offsets, OFFSET_BYTES);
    *stop = get(offsets + OFFSET_BYTES, OFFSET_BYTES);
    return *preceding <= *stop && *stop <= segment->postings; /* unless it changed since it was verified */
}

/* The place of a zero among the bits of heads, which has so many other zeros before it; `bits` if there is none. */
static uint64_t find_zero(const uint8_t *content, uint64_t bits, uint64_t preceding) {
    for (uint64_t place = 0; place < bits; place += CHUNK) {
        uint32_t ones = get_chunk(content, bits, place);
        uint64_t in_chunk = bits - place < CHUNK ? bits - place : CHUNK;
        uint64_t zeros = in_chunk - (uint64_t)__builtin_popcount(ones);
        if (preceding < zeros) {
            uint32_t left = ~ones;
            while (preceding--) {
                left &= left - 1;
            }
            return place + (uint64_t)__builtin_ctz(left);
        }
        preceding -= zeros;
    }
    return bits;
}

/* Which postings of a bucket have a head: from `start` to before `stop`; false if what is read are no heads. */
static bool find_head(const uint8_t *content, struct bucket bucket, uint64_t head, uint64_t *start, uint64_t *stop) {
    if (bucket.has_table) {
        uint64_t next = head + 1;
        *start = get_bits(content, head * ENTRY_BITS, ENTRY_BITS);
        *stop = next < bucket.heads ? get_bits(content, next * ENTRY_BITS, ENTRY_BITS) : bucket.size;
    } else {
        uint64_t place = head ? find_zero(content, bucket.lows, head - 1) + 1 : 0;
        *start = place - head;
        while (place < bucket.lows && get_bits(content, place, 1)) {
            place++;
        }
        if (place >= bucket.lows) {
            return false;
        }
        *stop = place - head;
    }
    return *start <= *stop && *stop <= bucket.size;
}

/* Let `found` be the first of the postings `start` to `stop` of a bucket that have low bits of at least `low`; false if
 * damaged.  The low bits begin at a bit of the file. */
static bool find_low(const struct nd_segment *segment, uint64_t lows, uint64_t start, uint64_t stop, uint64_t low,
                     struct window *window, uint64_t *found) {
    int bits = low_bits(&segment->coding);
    while (start < stop) {
        uint64_t middle = (start + stop) / 2;
        uint64_t bit = lows + middle * (uint64_t)bits;
        const uint8_t *place = bytes_at(segment, bit / 8, bytes_of(bit, (uint64_t)bits), window);
        if (!place) {
            return false;
        }
        if (get_bits(place, bit % 8, bits) < low) {
            start = middle + 1;
        } else {
            stop = middle;
        }
    }
    *found = start;
    return true;
}

/* Let a hash have `count` numbers that begin at a bit of the file; false if damaged. */
static bool find_hash(const struct nd_segment *segment, uint32_t hash, struct window *directory,
                      struct window *postings, int64_t *place, int64_t *count) {
    const struct nd_coding *coding = &segment->coding;
    uint64_t nth = hash >> (32 - coding->bucket_bits);
    uint64_t preceding, end;
    if (!find_bucket(segment, nth, directory, &preceding, &end)) {
        return false;
    }
    struct bucket bucket = bucket_of(coding, end - preceding);
    uint64_t begin = segment->postings_start + place_of(coding, nth, preceding);
    uint64_t first = 0;
    uint64_t last = 0;
    if (bucket.size) {
        uint64_t size = bucket.has_table ? bucket.heads * ENTRY_BITS / 8 : (bucket.lows + 7) / 8;
        const uint8_t *heads = bytes_at(segment, begin, size, postings);
        uint64_t start, stop;
        uint64_t lows = 8 * begin + bucket.lows;
        uint64_t low = low_of(coding, hash);
        if (!heads || !find_head(heads, bucket, head_of(coding, hash), &start, &stop) ||
            !find_low(segment, lows, start, stop, low, postings, &first) ||
            !find_low(segment, lows, start, stop, low + 1, postings, &last)) {
            return false;
        }
    }
    *place = (int64_t)(8 * begin + bucket.numbers + first * (uint64_t)coding->number_bits);
    *count = (int64_t)(last - first);
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
    struct window directory, postings;
    directory.first = directory.stop = postings.first = postings.stop = 0;
    for (int64_t nth = 0; nth < n; nth++) {
        if (!find_hash(segment, hashes[nth], &directory, &postings, places + nth, counts + nth)) {
            return ND_DAMAGED;
        }
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
    int bits = segment->coding.number_bits;
    struct window window;
    window.first = window.stop = 0;
    int64_t written = 0;
    for (int64_t list = 0; list < n; list++) {
        if (counts[list] < 0 || counts[list] > room - written || places[list] < 0 ||
            (uint64_t)places[list] > 16 * PLACE_LIMIT) {
            return ND_INVALID;
        }
        for (int64_t nth = 0; nth < counts[list]; nth++) {
            uint64_t bit = (uint64_t)places[list] + (uint64_t)nth * (uint64_t)bits;
            const uint8_t *bytes = bytes_at(segment, bit / 8, bytes_of(bit, (uint64_t)bits), &window);
            if (!bytes) {
                return ND_DAMAGED;
            }
            uint64_t number = (uint64_t)segment->coding.first + get_bits(bytes, bit % 8, bits);
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
