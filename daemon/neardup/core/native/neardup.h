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

/* ==== normalise.c and fingerprint.c: texts and fingerprints ==================================================== */

enum {
    ND_ROWS = 64,              /* of a signature */
    ND_SAMPLE = 256,           /* characters of a text of which some are counted */
    ND_BLOCK = 128,            /* code points */
    ND_BLOCKS = 0x110000 / 128
};

/* The constants of the language-independent part: core/native/fingerprint.py says where each is computed. */
typedef struct {
    const uint32_t *forms;        /* of each code point its normal form and flags; the last entry serves all beyond */
    uint64_t form_count;          /* at least 0xE00 */
    const uint32_t *compositions; /* rows of three: two code points, and the one to which they compose */
    uint64_t composition_count;   /* rows */
    const uint16_t *readings;     /* four rows: how a look-alike is read beside other letters */
    uint64_t reading_count;       /* code points in a row */
    const uint8_t *consonants;    /* of each code point its script and consonant class, 255 for none; likewise */
    uint64_t consonant_count;     /* at least 1 */
    const int64_t *weights;       /* of a word in the SimHash, by its frequency in the text */
    uint64_t weight_count;
    const uint64_t *multipliers;  /* ND_ROWS, of the permutations of the signature */
    const uint64_t *addends;      /* ND_ROWS */
} nd_tables;

/* A fingerprint.  The pointers lead into the room that was given. */
typedef struct {
    uint64_t room;                /* bytes of room that the text needs, with ND_ROOM */
    uint64_t words, shingles;     /* in all; distinct */
    const uint8_t *normalised;    /* the words in UTF-8, separated by spaces */
    uint64_t normalised_bytes;
    const uint64_t *hashes;       /* `words`, in the order of the text: the first half of each word's digest */
    const uint32_t *passages;     /* ascending: the passage hashes, and the hashes of the skeleton */
    uint64_t passage_count;
    uint8_t text_hash[16], simhash[16], signature[ND_ROWS]; /* the signature is meaningless with few shingles */
} nd_fingerprint;

/* A text in UTF-8 -> its fingerprint; the number of words.  Reference: `fingerprint(tokens(text))` in
 * core/fingerprint/compute.py.
 *
 * ND_ROOM: the text needs `out->room` bytes of room, at most 80 a byte of text and mostly 10.  ND_UNSUPPORTED: the text
 * has a code point or a word that only the reference can handle, or more than 2^28 bytes.  ND_INVALID: no UTF-8. */
ND_API int64_t nd_fingerprint_text(
    const nd_tables *tables, const uint8_t *text, size_t bytes, uint8_t *room, size_t room_bytes, nd_fingerprint *out);

/* The same, but only the normalised text, the hashes of its words, and in `passages` those of the skeleton alone. */
ND_API int64_t nd_hash_text(
    const nd_tables *tables, const uint8_t *text, size_t bytes, uint8_t *room, size_t room_bytes, nd_fingerprint *out);

/* Counts of a text's characters, see core/text/characters.py; those of a sample are `sampled` and what follows. */
typedef struct {
    uint32_t letters, unusual, sampled, visible, signs;
    uint32_t blocks; /* with letters */
} nd_characters;

/* Count the characters of a text in UTF-8; returns how many they are.  Reference: core/text/characters.py.
 *
 * `block_counts` and `block_numbers` (ND_BLOCKS each) are then, for the first `out->blocks`, how many letters stand in a
 * block of ND_BLOCK code points, and the block's number, ascending.  A letter is one of ASCII or beyond ASCII.
 * ND_INVALID: no UTF-8.  ND_UNSUPPORTED: more than 2^32 - 1 bytes. */
ND_API int64_t nd_count_characters(
    const uint8_t *text, size_t bytes, uint32_t *block_counts, uint16_t *block_numbers, nd_characters *out);

/* ==== alignment.c: what two texts share ======================================================================== */

/* A text is here the hashes of its words in reading order, 2^30 words at most.  Words are counted from 0.
 *
 * The caller lends the functions room for their work and their result: `room`, at an address that 8 divides, of at
 * least as many bytes as nd_alignment_room tells.  They touch little of it unless texts share much, so large room costs
 * nothing that is not mapped; it need not be cleared, and may be lent again.  They return ND_INVALID for less room.
 */

/* The bytes of room for two texts of so many words, or ND_INVALID for more than 2^30 words. */
ND_API int64_t nd_alignment_room(int64_t words_a, int64_t words_b);

/* Find the runs of equal words that form the blocks of two texts.
 *
 * Returns their number n, and leaves n rows of four int32 at the begin of the room: place in a, place in b, words, number
 * of the block.  They are in the order of the longer text; of two of one length, of that whose bytes compare as less.
 * Reference: core.verify.alignment.aligned.
 */
ND_API int64_t nd_aligned(const uint64_t *a, int64_t words_a, const uint64_t *b, int64_t words_b, void *room,
                          int64_t room_bytes);

struct nd_copied {
    int64_t words;        /* equal words of all blocks, without repetitions */
    int64_t common_words; /* equal words that stand in common passages */
    int64_t longest_run;  /* words of the longest run that both share; -1 if the alignment did not find it */
    int64_t spans_a;      /* the number of spans of a */
    int64_t spans_b;
};

/* Find what two texts share, apart from common passages, whose `commons` hashes ascend.
 *
 * Texts whose blocks have fewer than `at_least` equal words share nothing.  Returns 0, and leaves at the begin of the
 * room a struct nd_copied, then the spans of a and then those of b: each as two int32, its first word and the word after
 * its last.  Reference: core.verify.alignment.copied.
 */
ND_API int64_t nd_copied(const uint64_t *a, int64_t words_a, const uint64_t *b, int64_t words_b, const uint32_t *common,
                         int64_t commons, int64_t at_least, void *room, int64_t room_bytes);

/* Find which words of a text stand in common passages, whose `commons` hashes ascend: 1 for each in `marks`, or else 0.
 *
 * The room is that for this text and one of no words.  Returns 0.  Reference: core.verify.copied_words.words_in_common.
 */
ND_API int64_t nd_words_in_common(const uint64_t *words, int64_t length, const uint32_t *common, int64_t commons,
                                  uint8_t *marks, void *room, int64_t room_bytes);

/* Count the hashes that two sets share.  Those of each ascend and are distinct; the first set should be the smaller one.
 *
 * Returns the count.  Reference: core.verify.sets.count_shared.
 */
ND_API int64_t nd_count_shared(const uint64_t *few, int64_t n, const uint64_t *many, int64_t m);

/* Count the distinct grams of two skeletons of n and m consonant classes, below 8 each: `counts` becomes those of a,
 * those of b, and those of both.
 *
 * A gram has `size` classes, 1 to 20; the room is that for two texts of n and m words.  Returns 0.  Reference:
 * core.verify.skeletons.count_grams.
 */
ND_API int64_t nd_shared_grams(const uint8_t *a, int64_t n, const uint8_t *b, int64_t m, int64_t size,
                               int64_t counts[3], void *room, int64_t room_bytes);

/* ==== candidates.c: pairs of stories that are worth verifying ================================================== */

/* ==== segments.c: lookups in the files of the passage index ==================================================== */

/* ==== codes.c: nearest binary codes of vectors ================================================================= */

#endif
