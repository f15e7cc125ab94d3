/* Key join: the pairs in buckets of any keys, or of any passage hashes, each at one of those that it shares. */
#include "scores.h"

#define HASH_BANDS 8 /* of a SimHash: 16 bits each */
#define RANK_BITS_SHIFT 32
#define RANK_ROWS_SHIFT 40
#define KEY_NUMBER_SHIFT 50

/* The bits of a SimHash that make each of the first keys. */
typedef struct {
    int64_t groups;
    uint64_t masks[HASH_BANDS][2];
} group_masks;

/* `edges` are the number of groups, and their edges in bands.  Returns 0 if they are wrong. */
static int read_groups(const int64_t *edges, group_masks *read) {
    memset(read, 0, sizeof *read);
    read->groups = edges[0];
    if (read->groups < 0 || read->groups > HASH_BANDS) {
        return 0;
    }
    for (int64_t group = 0; group < read->groups; group++) {
        if (edges[group + 1] < 0 || edges[group + 1] > edges[group + 2] || edges[group + 2] > HASH_BANDS) {
            return 0;
        }
        for (int64_t band = edges[group + 1]; band < edges[group + 2]; band++) {
            read->masks[group][band / 4] |= (uint64_t)0xFFFF << 16 * (band % 4);
        }
    }
    return 1;
}

/* The keys that two stories of a language share: bit k for key k. */
INLINE uint64_t shared_keys(const nd_fingerprints *stories, int64_t story, int64_t other, const group_masks *groups,
                            uint32_t bands) {
    uint64_t low = stories->simhashes[2 * story] ^ stories->simhashes[2 * other];
    uint64_t high = stories->simhashes[2 * story + 1] ^ stories->simhashes[2 * other + 1];
    uint64_t shared = 0;
    for (int64_t group = 0; group < groups->groups; group++) {
        uint64_t differing = (low & groups->masks[group][0]) | (high & groups->masks[group][1]);
        shared |= (uint64_t)(differing == 0) << group;
    }
    if (stories->is_signed[story] && stories->is_signed[other]) {
        uint32_t equal = equal_bands(stories->signatures + ROWS * story, stories->signatures + ROWS * other);
        shared |= (uint64_t)(equal & bands) << groups->groups;
    }
    return shared;
}

/* Let the last element of a heap, the greatest first, rise to its place (Williams, CACM 1964). */
static void rise(int64_t *heap, int64_t size) {
    int64_t at = size - 1;
    int64_t value = heap[at];
    while (at > 0 && heap[(at - 1) / 2] < value) {
        heap[at] = heap[(at - 1) / 2];
        at = (at - 1) / 2;
    }
    heap[at] = value;
}

/* Put a value in the place of the greatest one, and let it sink to its place. */
static void sink(int64_t *heap, int64_t size, int64_t value) {
    int64_t at = 0;
    for (int64_t child = 1; child < size; child = 2 * at + 1) {
        child += child + 1 < size && heap[child + 1] > heap[child];
        if (heap[child] <= value) {
            break;
        }
        heap[at] = heap[child];
        at = child;
    }
    heap[at] = value;
}

/* A heap becomes an ascending array. */
static void sort_heap(int64_t *heap, int64_t size) {
    for (int64_t last = size - 1; last > 0; last--) {
        int64_t greatest = heap[0];
        sink(heap, last, heap[last]);
        heap[last] = greatest;
    }
}

/* How many rows of a bucket before the row `other` match it there; the ranks of the best `most`, best first. */
static int64_t rank_matches(const nd_key_join *join, int64_t bucket, int64_t other, const group_masks *groups,
                            int64_t *ranks, int64_t most) {
    const nd_fingerprints *stories = &join->stories;
    int64_t start = join->edges[bucket];
    int64_t language = stories->languages[other];
    const nd_thresholds *own = join->thresholds + language;
    uint64_t here = (uint64_t)1 << (join->keys[bucket] >> KEY_NUMBER_SHIFT & 0x3F);
    uint32_t bands = low_bits(own->bands);
    int64_t stop = join->splits[bucket] > 0 ? start + join->splits[bucket] : other;
    int64_t found = 0;
    for (int64_t story = start; story < stop; story++) {
        uint64_t shared = shared_keys(stories, story, other, groups, bands);
        if ((shared & (0 - shared)) != here || join->ids[story] == join->ids[other]) {
            continue;
        }
        scores scored = score_pair(stories, story, stories, other, own);
        if (!scored.is_alike) {
            continue;
        }
        int64_t held = found < most ? found : most;
        int64_t rank = (int64_t)(ROWS - scored.rows) << RANK_ROWS_SHIFT | (int64_t)scored.bits << RANK_BITS_SHIFT |
                       (story - start);
        if (held < most) {
            ranks[held] = rank;
            rise(ranks, held + 1);
        } else if (most > 0 && rank < ranks[0]) {
            sink(ranks, most, rank);
        }
        found++;
    }
    sort_heap(ranks, found < most ? found : most);
    return found;
}

static int is_valid_bucket(const int64_t *edges, int64_t bucket, int64_t rows) {
    return edges[bucket] >= 0 && edges[bucket] <= edges[bucket + 1] && edges[bucket + 1] <= rows;
}

int64_t nd_pairs_in_buckets(const nd_key_join *join, int64_t *cursor, int64_t *ranks, int64_t ranks_size,
                            const nd_pairs *out, int64_t *left_out) {
    int64_t pairs = 0;
    if (cursor[0] < 0 || cursor[1] < 0 || !are_valid(&join->stories, join->thresholds, join->languages)) {
        return ND_INVALID;
    }
    for (; cursor[0] < join->buckets; cursor[0]++, cursor[1] = 0) {
        int64_t bucket = cursor[0];
        if (!is_valid_bucket(join->edges, bucket, join->stories.size) || join->splits[bucket] < 0) {
            return ND_INVALID;
        }
        int64_t start = join->edges[bucket];
        int64_t stop = join->edges[bucket + 1];
        if (start == stop) {
            continue;
        }
        int64_t language = join->stories.languages[start];
        int64_t most = join->max_matches[language];
        group_masks groups;
        if (!read_groups(join->group_edges + (HASH_BANDS + 2) * language, &groups) || most < 0) {
            return ND_INVALID;
        }
        int64_t done = cursor[1] > join->splits[bucket] ? cursor[1] : join->splits[bucket];
        for (; done < stop - start; done++) {
            int64_t other = start + done;
            int64_t possible = done < most ? done : most;
            if (join->ids[other] < 0 || join->stories.languages[other] != language) {
                continue;
            }
            if (possible > ranks_size) {
                return ND_INVALID;
            }
            if (pairs + possible > out->room) {
                cursor[1] = done;
                return pairs;
            }
            int64_t found = rank_matches(join, bucket, other, &groups, ranks, possible);
            left_out[language] += found > possible ? found - possible : 0;
            for (int64_t n = 0; n < found && n < possible; n++, pairs++) {
                out->left[pairs] = start + (ranks[n] & 0xFFFFFFFF);
                out->right[pairs] = other;
                out->rows[pairs] = ROWS - (ranks[n] >> RANK_ROWS_SHIFT);
                out->bits[pairs] = ranks[n] >> RANK_BITS_SHIFT & 0xFF;
            }
        }
    }
    return pairs;
}

/* How many numbers two ascending lists share, if `wanted` is the first of them; 0 otherwise. */
static int64_t count_from(int64_t wanted, const int64_t *list, const int64_t *end, const int64_t *other,
                          const int64_t *other_end) {
    int64_t count = 0;
    while (list < end && other < other_end) {
        if (*list < *other) {
            list++;
        } else if (*list > *other) {
            other++;
        } else if (count == 0 && *list != wanted) {
            return 0;
        } else {
            count++;
            list++;
            other++;
        }
    }
    return count;
}

static int are_valid_lists(const nd_hash_join *join) {
    if (join->stories.size < 0 || join->ends[0] < 0 || join->ends[join->stories.size] > join->lists_size) {
        return 0;
    }
    for (int64_t row = 0; row < join->stories.size; row++) {
        if (join->ends[row] > join->ends[row + 1]) {
            return 0;
        }
    }
    return are_valid(&join->stories, join->thresholds, join->languages);
}

int64_t nd_pairs_in_hash_buckets(const nd_hash_join *join, int64_t *cursor, int64_t *left, int64_t *right,
                                 int64_t *shared, int64_t room) {
    const nd_fingerprints *stories = &join->stories;
    const int64_t *ends = join->ends;
    int64_t pairs = 0;
    if (cursor[0] < 0 || cursor[1] < 0 || !are_valid_lists(join)) {
        return ND_INVALID;
    }
    for (; cursor[0] < join->buckets; cursor[0]++, cursor[1] = 0) {
        int64_t bucket = cursor[0];
        if (!is_valid_bucket(join->edges, bucket, stories->size)) {
            return ND_INVALID;
        }
        int64_t start = join->edges[bucket];
        int64_t size = join->edges[bucket + 1] - start;
        for (int64_t done = cursor[1]; done < size; done++) {
            int64_t other = start + done;
            if (pairs + done > room) {
                cursor[1] = done;
                return pairs;
            }
            for (int64_t story = start; story < other && join->ids[other] >= 0; story++) {
                int64_t common =
                    count_from(join->hashes[bucket], join->lists + ends[story], join->lists + ends[story + 1],
                               join->lists + ends[other], join->lists + ends[other + 1]);
                if (common == 0 || common < join->min_shared ||
                    score_pair(stories, story, stories, other, join->thresholds + stories->languages[story]).is_alike) {
                    continue;
                }
                left[pairs] = story;
                right[pairs] = other;
                shared[pairs] = common;
                pairs++;
            }
        }
    }
    return pairs;
}
