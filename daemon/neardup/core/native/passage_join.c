/* Numbers of stories that several lists hold.
 *
 * Passage join: all pairs of stories that share passage hashes, in bounded memory.
 * Shared numbers: the story numbers in several of the buckets of a lookup.
 */
#include <stdlib.h>

#include "internal.h"

/* ---- Sorting --------------------------------------------------------------------------------------------------- */

#define SHORT_LIST 48 /* numbers: longer lists take less time by digits */

static void sort_short(uint32_t *numbers, int64_t size) {
    for (int64_t n = 1; n < size; n++) {
        uint32_t number = numbers[n];
        int64_t at = n;
        while (at > 0 && numbers[at - 1] > number) {
            numbers[at] = numbers[at - 1];
            at--;
        }
        numbers[at] = number;
    }
}

/* Sort numbers in place by their bytes, the least significant first (Knuth, volume 3, section 5.2.5).
 *
 * A byte that all numbers share takes no pass.  `work` has room for as many numbers.
 */
static void sort_numbers(uint32_t *numbers, int64_t size, uint32_t *work) {
    if (size <= SHORT_LIST) {
        sort_short(numbers, size);
        return;
    }
    int64_t places[4][256] = {{0}};
    for (int64_t n = 0; n < size; n++) {
        for (int digit = 0; digit < 4; digit++) {
            places[digit][numbers[n] >> 8 * digit & 0xFF]++;
        }
    }
    uint32_t *from = numbers;
    uint32_t *to = work;
    for (int digit = 0; digit < 4; digit++) {
        int64_t *place = places[digit];
        int shift = 8 * digit;
        if (place[from[0] >> shift & 0xFF] == size) {
            continue;
        }
        int64_t begin = 0;
        for (int value = 0; value < 256; value++) {
            int64_t count = place[value];
            place[value] = begin;
            begin += count;
        }
        for (int64_t n = 0; n < size; n++) {
            to[place[from[n] >> shift & 0xFF]++] = from[n];
        }
        uint32_t *sorted = to;
        to = from;
        from = sorted;
    }
    if (from != numbers) {
        memcpy(numbers, from, (size_t)size * sizeof *numbers);
    }
}

/* ---- Passage join: pairs that share passage hashes ------------------------------------------------------------- */

/* Sorted postings are cut into groups: the stories that hold a hash.  Pairs are then counted by their later story: each
 * group copies its earlier members to the list of each of its members, and what a list contains twice shares two
 * hashes.  See neardup.core.candidates.passage_groups.
 */

#define DEAD 255

/* Copy the holders of the hash of posting `at`; returns where the next hash begins, or ND_INVALID. */
INLINE int64_t read_holders(const uint64_t *postings, int64_t size, int64_t at, const uint8_t *language_of,
                            int64_t numbers, uint32_t *holders, int64_t *found) {
    uint64_t passage = postings[at] >> 32;
    *found = 0;
    for (; at < size && postings[at] >> 32 == passage; at++) {
        uint32_t number = (uint32_t)postings[at];
        if (number >= numbers) {
            return ND_INVALID;
        }
        if (language_of[number] != DEAD && (*found == 0 || holders[*found - 1] != number)) {
            holders[(*found)++] = number;
        }
    }
    return at;
}

/* How many different copy keys some stories have; `keys` and `work` have room for as many numbers. */
static int64_t count_copy_keys(const uint32_t *holders, int64_t found, const uint32_t *copy_keys, uint32_t *keys,
                               uint32_t *work) {
    for (int64_t n = 0; n < found; n++) {
        keys[n] = copy_keys[holders[n]];
    }
    sort_numbers(keys, found, work);
    int64_t different = 0;
    for (int64_t n = 0; n < found; n++) {
        different += n == 0 || keys[n] != keys[n - 1];
    }
    return different;
}

/* Add a hash that too many stories hold, once for each of their languages; returns how many there are now. */
static int64_t put_common(nd_common_hashes *common, uint32_t hash, const uint32_t *holders, int64_t found,
                          int64_t surplus, const uint8_t *language_of) {
    uint8_t is_seen[DEAD] = {0};
    for (int64_t n = 0; n < found; n++) {
        uint8_t language = language_of[holders[n]];
        if (is_seen[language]) {
            continue;
        }
        is_seen[language] = 1;
        if (common->size >= common->room) {
            return ND_ROOM;
        }
        common->hashes[common->size] = hash;
        common->holders[common->size] = found;
        common->surplus[common->size] = surplus;
        common->examples[common->size] = holders[n];
        common->size++;
    }
    return common->size;
}

/* As nd_cut_into_groups; `keys` and `work` have room for `most` numbers each, or `size` if that is less. */
static int64_t cut_into_groups(const uint64_t *postings, int64_t size, const uint8_t *language_of,
                               const uint32_t *copy_keys, int64_t numbers, int64_t most_keys, int64_t most,
                               uint32_t *pairs_of, uint32_t *groups, uint32_t *keys, uint32_t *work,
                               nd_common_hashes *common) {
    int64_t end = 0;
    for (int64_t n = 0; n < size;) {
        uint32_t hash = (uint32_t)(postings[n] >> 32);
        uint32_t *holders = groups + end + 1;
        int64_t found;
        n = read_holders(postings, size, n, language_of, numbers, holders, &found);
        if (n < 0) {
            return n;
        }
        int64_t surplus = found > most ? found - most : 0;
        if (found > most_keys && found <= most) {
            surplus = count_copy_keys(holders, found, copy_keys, keys, work) - most_keys;
        }
        if (surplus > 0) {
            if (put_common(common, hash, holders, found, surplus, language_of) < 0) {
                return ND_ROOM;
            }
        } else if (found > 1) {
            groups[end] = (uint32_t)found;
            for (int64_t nth = 0; nth < found; nth++) {
                pairs_of[holders[nth]] += (uint32_t)nth;
            }
            end += found + 1;
        }
    }
    return end;
}

int64_t nd_cut_into_groups(const uint64_t *postings, int64_t size, const uint8_t *language_of,
                           const uint32_t *copy_keys, int64_t numbers, int64_t most_keys, int64_t most,
                           uint32_t *pairs_of, uint32_t *groups, int64_t room, nd_common_hashes *found) {
    if (size < 0 || found->size < 0 || most < 0 || most_keys < 0) {
        return ND_INVALID;
    }
    if (room < 0 || room - 2 - size / 2 < size) {
        return ND_ROOM;
    }
    int64_t kept = most < size ? most : size;
    uint32_t *buffer = malloc((size_t)(2 * kept + 1) * sizeof *buffer);
    if (buffer == NULL) {
        return ND_NO_MEMORY;
    }
    int64_t end = cut_into_groups(postings, size, language_of, copy_keys, numbers, most_keys, most, pairs_of, groups,
                                  buffer, buffer + kept, found);
    free(buffer);
    return end;
}

int64_t nd_list_earlier(const uint32_t *groups, int64_t size, int64_t first, uint32_t *earlier, int64_t room,
                        int64_t *ends, int64_t stories) {
    if (first < 0 || first > UINT32_MAX || stories < 0 || stories > UINT32_MAX || room < 0) {
        return ND_INVALID;
    }
    int64_t stop = first + stories;
    for (int64_t at = 0; at < size;) {
        int64_t count = groups[at];
        const uint32_t *members = groups + at + 1;
        if (count > size - at - 1) {
            return ND_INVALID;
        }
        at += count + 1;
        int64_t last = count - 1;
        while (last > 0 && members[last] >= stop) {
            last--;
        }
        for (; last > 0 && members[last] >= first; last--) {
            if (members[last] >= stop) {
                return ND_INVALID;
            }
            int64_t *end = ends + (members[last] - first);
            if (*end < 0 || *end > room - last) {
                return ND_INVALID;
            }
            memcpy(earlier + *end, members, (size_t)last * sizeof *members);
            *end += last;
        }
    }
    return 0;
}

int64_t nd_count_shared(uint32_t *earlier, int64_t earlier_size, const int64_t *ends, int64_t stories, int64_t first,
                        int64_t min_shared, uint32_t *work, int64_t work_size, uint32_t *left, uint32_t *right,
                        int64_t *shared, int64_t room) {
    int64_t pairs = 0;
    for (int64_t story = 0; story < stories; story++) {
        int64_t begin = ends[story];
        int64_t end = ends[story + 1];
        if (begin < 0 || end < begin || end > earlier_size || end - begin > work_size) {
            return ND_INVALID;
        }
        uint32_t *members = earlier + begin;
        int64_t size = end - begin;
        sort_numbers(members, size, work);
        for (int64_t start = 0, n = 1; n <= size; n++) {
            if (n < size && members[n] == members[start]) {
                continue;
            }
            if (n - start >= min_shared) {
                if (pairs >= room) {
                    return ND_ROOM;
                }
                left[pairs] = members[start];
                right[pairs] = (uint32_t)first + (uint32_t)story;
                shared[pairs] = n - start;
                pairs++;
            }
            start = n;
        }
    }
    return pairs;
}

/* ---- Shared numbers: those in several of the buckets of a lookup ------------------------------------------------ */

/* Nearly all numbers occur in one bucket only.  So two bitmaps that fit a processor's cache first mark the numbers that
 * may occur twice, by a hash of the number (a Bloom filter with one hash function: Bloom, CACM 1970), and only the
 * occurrences of these are sorted and counted.
 */

#define MULTIPLIER 2654435769u /* 2^32 / golden ratio (Knuth, volume 3, section 6.4) */
#define BITS_A_NUMBER 8
#define MIN_WIDTH 12
#define MAX_WIDTH 32

/* The width of a hash that has BITS_A_NUMBER values or more for each number. */
static int width_for(int64_t numbers) {
    int width = MIN_WIDTH;
    while (width < MAX_WIDTH && (int64_t)1 << width < BITS_A_NUMBER * numbers) {
        width++;
    }
    return width;
}

/* The buckets of one lookup. */
typedef struct {
    const uint32_t *members;
    const int64_t *edges;
    const int64_t *buckets;
    int64_t count;
    int64_t total; /* members of all of them */
} lookup_buckets;

/* Gather the occurrences of numbers that may occur in two buckets; returns how many there are.
 *
 * None that occurs twice is missing; a few others are there because their hashes collide.  `gathered` has room for
 * all members.
 */
static int64_t gather_repeated(const lookup_buckets *lookup, uint64_t *bitmaps, uint32_t *gathered) {
    int width = width_for(lookup->total);
    int shift = 32 - width;
    size_t words = (size_t)1 << (width - 6);
    uint64_t *seen_once = bitmaps;
    uint64_t *seen_twice = bitmaps + words;
    memset(bitmaps, 0, 2 * words * sizeof *bitmaps);
    for (int64_t n = 0; n < lookup->count; n++) {
        int64_t bucket = lookup->buckets[n];
        for (int64_t at = lookup->edges[bucket]; at < lookup->edges[bucket + 1]; at++) {
            uint32_t slot = lookup->members[at] * MULTIPLIER >> shift;
            uint64_t bit = (uint64_t)1 << (slot & 63);
            seen_twice[slot >> 6] |= seen_once[slot >> 6] & bit;
            seen_once[slot >> 6] |= bit;
        }
    }
    int64_t count = 0;
    for (int64_t n = 0; n < lookup->count; n++) {
        int64_t bucket = lookup->buckets[n];
        for (int64_t at = lookup->edges[bucket]; at < lookup->edges[bucket + 1]; at++) {
            uint32_t slot = lookup->members[at] * MULTIPLIER >> shift;
            gathered[count] = lookup->members[at]; /* overwritten unless it counts: no branch is mispredicted */
            count += (int64_t)(seen_twice[slot >> 6] >> (slot & 63) & 1);
        }
    }
    return count;
}

static int64_t gather_all(const lookup_buckets *lookup, uint32_t *gathered) {
    int64_t count = 0;
    for (int64_t n = 0; n < lookup->count; n++) {
        int64_t begin = lookup->edges[lookup->buckets[n]];
        int64_t size = lookup->edges[lookup->buckets[n] + 1] - begin;
        if (size) {
            memcpy(gathered + count, lookup->members + begin, (size_t)size * sizeof *gathered);
        }
        count += size;
    }
    return count;
}

/* Sort the numbers, and keep one of each that occurs `least` times; returns how many these are. */
static int64_t keep_frequent(uint32_t *numbers, int64_t size, int64_t least, uint32_t *work, uint32_t *found) {
    int64_t kept = 0;
    sort_numbers(numbers, size, work);
    for (int64_t start = 0, n = 1; n <= size; n++) {
        if (n < size && numbers[n] == numbers[start]) {
            continue;
        }
        if (n - start >= least) {
            found[kept++] = numbers[start];
        }
        start = n;
    }
    return kept;
}

/* The members of a lookup's buckets, or ND_INVALID for a bucket that does not exist. */
static int64_t count_members(const int64_t *buckets, int64_t count, const int64_t *edges, int64_t edges_size) {
    int64_t total = 0;
    for (int64_t n = 0; n < count; n++) {
        if (buckets[n] < 0 || buckets[n] >= edges_size - 1) {
            return ND_INVALID;
        }
        total += edges[buckets[n] + 1] - edges[buckets[n]];
    }
    return total;
}

static int are_valid_edges(const int64_t *edges, int64_t edges_size, int64_t members_size) {
    if (edges_size < 1 || edges[0] < 0 || edges[edges_size - 1] > members_size) {
        return 0;
    }
    for (int64_t n = 1; n < edges_size; n++) {
        if (edges[n] < edges[n - 1]) {
            return 0;
        }
    }
    return 1;
}

int64_t nd_shared_by(const uint32_t *members, int64_t members_size, const int64_t *edges, int64_t edges_size,
                     const int64_t *lookups, int64_t lookups_size, int64_t buckets, int64_t least, uint32_t *found,
                     int64_t room, int64_t *ends) {
    int64_t largest = 0;
    if (buckets < 0 || least < 1 || !are_valid_edges(edges, edges_size, members_size)) {
        return ND_INVALID;
    }
    for (int64_t lookup = 0; lookup < lookups_size; lookup++) {
        int64_t total = count_members(lookups + lookup * buckets, buckets, edges, edges_size);
        if (total < 0) {
            return ND_INVALID;
        }
        largest = total > largest ? total : largest;
    }
    size_t words = (size_t)1 << (width_for(largest) - 6);
    uint64_t *bitmaps = malloc(2 * words * sizeof *bitmaps + 2 * (size_t)largest * sizeof(uint32_t));
    if (!bitmaps) {
        return ND_NO_MEMORY;
    }
    uint32_t *gathered = (uint32_t *)(bitmaps + 2 * words);
    uint32_t *work = gathered + largest;
    int64_t done = 0;
    ends[0] = 0;
    for (; done < lookups_size; done++) {
        lookup_buckets lookup = {members, edges, lookups + done * buckets, buckets, 0};
        lookup.total = count_members(lookup.buckets, buckets, edges, edges_size);
        if (lookup.total / least > room - ends[done]) {
            break;
        }
        int64_t count = least == 1 ? gather_all(&lookup, gathered) : gather_repeated(&lookup, bitmaps, gathered);
        ends[done + 1] = ends[done] + keep_frequent(gathered, count, least, work, found + ends[done]);
    }
    free(bitmaps);
    return done;
}
