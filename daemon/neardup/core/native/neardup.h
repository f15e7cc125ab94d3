/* neardup's native core: the functions that compiled code makes worth having, for any program that can call C.
 *
 * Every function is pure: it reads the buffers that it is given and writes to those that are its output.  It allocates
 * nothing unless its comment says so, keeps no state between two calls, and may run in any number of threads at once.
 * Lengths count elements unless a comment says bytes.  Numbers are in the order of the machine, which is
 * little-endian. Every length, offset and index that comes from outside is checked.
 *
 * A function returns a count or 0, or one of the negative codes below.  Beside each stands its reference in Python,
 * which explains the algorithm and gives the same result bit by bit; its name is in the comment. */
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
#define ND_INTERFACE 4
ND_API int nd_interface(void);

/* ==== normalise.c and fingerprint.c: texts and fingerprints ==================================================== */

enum {
    ND_ROWS = 64,              /* of a signature */
    ND_RARE_PAIRS = 14,        /* hashes of a story */
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
    const uint8_t *consonants;    /* of each code point its consonant class, 255 for none; likewise */
    uint64_t consonant_count;     /* at least 0xE00 */
    const int64_t *weights;       /* of a word in the SimHash, by its frequency in the text */
    uint64_t weight_count;
    const uint64_t *multipliers;  /* ND_ROWS, of the permutations of the signature */
    const uint64_t *addends;      /* ND_ROWS */
    const uint64_t *common_words; /* a filter of word hashes: the bit at the top bits of the hash of a common word is set */
    uint64_t common_bits;         /* binary logarithm of its bits, 6 to 32 */
} nd_tables;

/* A fingerprint.  The pointers lead into the room that was given. */
typedef struct {
    uint64_t room;                /* bytes of room that the text needs, with ND_ROOM */
    uint64_t words, shingles;     /* in all; distinct */
    const uint8_t *normalised;    /* the words in UTF-8, separated by spaces */
    uint64_t normalised_bytes;
    const uint64_t *hashes;       /* `words`, in the order of the text: the first half of each word's digest */
    const uint32_t *passages;     /* ascending: the passage hashes, and those of the skeleton and of rare pairs */
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

/* The hashes of the rare pairs of `count` words, by their hashes in reading order; returns how many there are.
 * `hashes` has room for ND_RARE_PAIRS.  ND_INVALID: no filter.  Reference:
 * core.fingerprint.compute.hash_rare_pairs. */
ND_API int64_t nd_rare_pairs(
    const uint64_t *words, int64_t count, const uint64_t *common_words, int64_t common_bits, uint32_t *hashes);

/* Counts of a text's characters, see core/text/scripts.py; those of a sample are `sampled` and what follows. */
typedef struct {
    uint32_t letters, unusual, sampled, visible, signs;
    uint32_t blocks; /* with letters */
} nd_characters;

/* Count the characters of a text in UTF-8; returns how many they are.  Reference: core/text/scripts.py.
 *
 * `block_counts` and `block_numbers` (ND_BLOCKS each) are then, for the first `out->blocks`, how many letters stand in
 * a block of ND_BLOCK code points, and the block's number, ascending.  A letter is one of ASCII or beyond ASCII.
 * ND_INVALID: no UTF-8.  ND_UNSUPPORTED: more than 2^32 - 1 bytes. */
ND_API int64_t nd_count_characters(
    const uint8_t *text, size_t bytes, uint32_t *block_counts, uint16_t *block_numbers, nd_characters *out);

/* ==== page.c: the visible text of a parsed page ================================================================= */

/* A node, an attribute and a document of lexbor, of which nothing is known here but their addresses. */
typedef struct nd_node nd_node;
typedef struct nd_attribute nd_attribute;
typedef struct nd_document nd_document;

/* The functions of lexbor by which a tree is read.  core/native/page.py has lexbor's names for them. */
typedef struct {
    nd_node *(*first_child)(nd_node *);
    nd_node *(*next)(nd_node *);
    nd_node *(*parent)(nd_node *);
    int (*type)(nd_node *);
    uintptr_t (*tag)(nd_node *);
    uint8_t *(*text)(nd_node *, size_t *);
    void *(*free_text)(nd_document *, uint8_t *);
    nd_attribute *(*first_attribute)(nd_node *);
    nd_attribute *(*next_attribute)(nd_attribute *);
    const uint8_t *(*name)(nd_attribute *, size_t *);
    const uint8_t *(*value)(nd_attribute *, size_t *);
    const uint8_t *(*qualified_name)(nd_node *, size_t *); /* of an element */
} nd_lexbor;

/* The classes of a tag. */
enum nd_tag_class {
    ND_BREAK = 1,       /* breaks a line before and after it */
    ND_INVISIBLE = 2,
    ND_PECULIAR = 4,    /* is shown in a way of its own */
    ND_ATTRIBUTED = 8,  /* its attributes may hide a text or show one */
    ND_ANNOTATION = 16, /* is the text, if there are many */
    ND_FRAME = 32,      /* its attributes may hold a page */
    ND_LIST = 64,       /* is invisible, unless its text is long */
    ND_STYLE = 128,
    ND_SUPERSCRIPT = 256,
    ND_LINK = 512,      /* may hold a style sheet in its address */
    ND_IN_PARTS = 1024, /* more is read of it than its text, if it is not a block */
    ND_PARTED = 2048,   /* the same of any element of this tag */
    ND_HOST = 4096,     /* may hold a shadow tree */
    ND_FIELD = 8192     /* of a form; its type says what it shows */
};

/* A parsed page, and which part of it is the story. */
typedef struct {
    nd_node *root;
    nd_node *const *bodies; /* the elements that are the story, none within another one */
    uint64_t body_count;
    const uint16_t *tags;   /* the classes of each tag, by lexbor's number of it; none for tags beyond */
    uint64_t tag_count;
    uint64_t most_annotations;
    uint64_t long_attribute, long_list; /* code points; longer texts may be shown */
} nd_page;

/* Why only the reference can extract the text of a page, or what must be judged first. */
enum nd_doubt {
    ND_NO_DOUBT,
    ND_UNJUDGED,        /* `unjudged` */
    ND_STYLED,          /* a style attribute, or one that stands for a style, may hide a text */
    ND_HIDDEN,          /* the attribute `hidden` or `popover` */
    ND_PECULIAR_TAG,
    ND_PAGE_WITHIN,     /* a page stands in an attribute */
    ND_LONG_TEXT,       /* of a list or in an attribute */
    ND_ANNOTATED,       /* many annotations, or a superscript beyond ASCII */
    ND_UNSEEN_STORY,    /* the story stands in an element that is invisible or a superscript */
    ND_LARGE,           /* for the room */
    ND_UNREADABLE       /* the text is not UTF-8, has replacement characters, or overrides its direction */
};

/* What a value is: that of an attribute of this name, that of the attribute `style` of an element that contains the
 * story, or all style sheets of a page. */
enum nd_kind {
    ND_STYLE_VALUE,
    ND_BGCOLOR_VALUE,
    ND_COLOR_VALUE,
    ND_TEXT_VALUE,
    ND_DIR_VALUE,
    ND_STYLE_AROUND,
    ND_SHEETS,
    ND_FRAME_KEY,  /* of nd_render */
    ND_VARIANT_KEY
};

/* A value that must be judged.  It stays where it is as long as the tree and the room. */
typedef struct {
    const uint8_t *value;
    uint64_t size, kind;
} nd_unjudged;

enum { ND_MOST_UNJUDGED = 32 };

/* The text of a story, which is in the room. */
typedef struct {
    const uint8_t *text;
    uint64_t characters;
    uint64_t has_acting_sheets; /* style sheets may act on what their selectors match */
    uint64_t doubt; /* nd_doubt */
    uint64_t unjudged_count;
    nd_unjudged unjudged[ND_MOST_UNJUDGED];
} nd_story;

/* Write the visible text of a page's story, a line for each block, and count its characters as nd_count_characters
 * does; returns the bytes of the text.
 *
 * `verdicts` is memory as of nd_learn.  Three bytes of room for each of the page are enough.  ND_UNSUPPORTED: see
 * `out->doubt`.  For ND_UNJUDGED teach the memory what is in `out->unjudged`, and call again.  Lexbor allocates memory
 * for a text node at a time.  Reference: core.text.html.extract_markup,
 * which looks at the same elements: those of the story, those that contain it, and style sheets wherever they stand. */
ND_API int64_t nd_read_story(const nd_lexbor *lexbor, const nd_page *page, const void *verdicts, size_t verdict_bytes,
                             uint8_t *room, size_t room_bytes, uint32_t *block_counts, uint16_t *block_numbers,
                             nd_characters *counts, nd_story *out);

enum { ND_VERDICT_SLOTS = 4096, ND_VERDICT_BYTES = 1 << 20 };

/* Remember the verdict on a value, such as whether it may hide a text, in a memory of ND_VERDICT_BYTES, which is 0 at
 * first and may be so again.
 *
 * Returns 0, or ND_ROOM for a memory that is full. */
ND_API int64_t nd_learn(void *verdicts, size_t verdict_bytes, uint64_t kind, const uint8_t *value, size_t size,
                        uint64_t verdict);

/* Write the text of an element with single spaces, and a line feed for each vertical tab, which stands for a line
 * break; returns its bytes, and counts its code points that are no white space.
 *
 * ND_ROOM: for less room than the element has text.  Reference: core.css.pieces.read_spaced_text_in_python. */
ND_API int64_t nd_spaced_text(const nd_lexbor *lexbor, nd_node *element, uint8_t *room, size_t room_bytes,
                              uint64_t *visible);

/* Whether the bytes of a page, if they are UTF-8, are certainly text with at most `most_tags` tags: 1 or 0.
 * Reference: core.text.decoding.is_plain. */
ND_API int64_t nd_is_plain(const uint8_t *page, size_t bytes, uint64_t most_tags);

/* ==== rendering.c: the text of a page by its styles =============================================================== */

enum { ND_ACTS = 1, ND_MOVES = 2 }; /* see core.css.declarations */
enum { ND_MOST_COMPOUNDS = 64 };

/* A rule of a style sheet.  Its selector has compounds, the last one first; or none, and `found` says what it matches. */
typedef struct {
    uint32_t flags, first_compound, compound_count;
} nd_rule;

/* A part of a selector, for an element that has the tag, unless that is 0, and all the names; if it `is_child`, the
 * compound before it is for the parent, and otherwise for any element that contains the element. */
typedef struct {
    uint32_t tag, is_child, first_name, name_count;
} nd_compound;

/* An id or a class, by its letters. */
typedef struct {
    uint32_t is_id, offset, size;
} nd_name;

typedef struct {
    const nd_node *node;
    uint64_t rule;
} nd_match;

/* The rules of the style sheets of a page, in their order; `number` is one for the same style sheets. */
typedef struct {
    uint64_t number;
    const nd_rule *rules;
    uint64_t rule_count;
    const nd_compound *compounds;
    uint64_t compound_count;
    const nd_name *names;
    uint64_t name_count;
    const uint8_t *letters;
    uint64_t letter_count;
    const nd_match *found; /* by the addresses of the nodes, and then by the rules */
    uint64_t found_count;
    uint64_t costly_count; /* rules whose selectors look at all siblings of an element */
    uint64_t most_matches, most_work; /* of rules and elements */
} nd_sheets;

/* Layer 0 is what is hidden, and ND_ALWAYS one that is always read. */
enum { ND_LAYERS = 256, ND_MOST_LAYERS = 32, ND_ALWAYS = 0xFFFF };
enum nd_style_flag {
    ND_TAKES_ROOM = 1,
    ND_PLAIN = 2,
    ND_VISIBLE = 4,
    ND_BOXED_IN = 8,
    ND_IN_DRAWING = 16,
    ND_TO_THE_LEFT = 32,
    ND_LAYS_OUT = 64
};
enum nd_variant { ND_COVERED, ND_CLIPPED, ND_UNSEEN, ND_VARIANTS };

/* A style as core.css.computed_style.Style; `variants` are the numbers of styles, or UINT32_MAX if they are not known. */
typedef struct {
    uint32_t layer, flags, variants[ND_VARIANTS];
} nd_style;

enum nd_frame_flag {
    ND_FRAME_UNCLEAR = 1, /* only the reference knows what it shows */
    ND_FRAME_LEAF = 2,    /* shows nothing within it, but an attribute */
    ND_FRAME_CLOSED = 4,  /* shows nothing within it */
    ND_FRAME_FIELD = 8,   /* shows its value or placeholder */
    ND_FRAME_ARRANGED = 16,
    ND_FRAME_TURNS = 32,  /* shows children in another order that declare nothing */
    ND_FRAME_FLEX = 64,
    ND_FRAME_REVERSED = 128,
    ND_FRAME_GRID = 256,
    /* Of the element among its siblings. */
    ND_FRAME_VALUES = 512, /* declares some */
    ND_FRAME_COVERS = 1024,
    ND_FRAME_ORDERED = 2048,
    ND_FRAME_PLACED = 4096,
    ND_FRAME_FLOATS = 8192,
    ND_FRAME_MOVES = 16384, /* its attribute `style` may move it */
    ND_FRAME_IN_CELL = 32768, /* names the cells of a grid that it stands in */
    /* Of what is within it. */
    ND_FRAME_GENERATES = 65536 /* shows texts before or after that within it */
};
enum nd_edge {
    ND_EDGE_BREAK = 1,
    ND_EDGE_HIDDEN_BREAK,
    ND_EDGE_INLINE_START,
    ND_EDGE_INLINE_END,
    ND_EDGE_LOW_START,
    ND_EDGE_LOW_END,
    ND_EDGE_BOX_START,
    ND_EDGE_BOX_END
};

/* What an element shows beside what is within it, and where it stands among its siblings.  Each byte of `start` and
 * `end` is an nd_edge, the least byte first; of the `generated` texts, some stand before what is within, and some
 * after it. */
typedef struct {
    uint32_t flags, style, start, end;
    uint32_t first_generated, before_count, after_count, reserved;
    double order, line, across;
} nd_frame;

/* A text that a style sheet generates, in `letters`, and its code points that are no white space. */
typedef struct {
    uint32_t offset, size, layer, takes_room, visible;
} nd_generated;

/* The frames and styles that are known.  `memory`, as of nd_learn, has `memory_count` bytes, and holds the numbers of
 * frames by their keys.  Style 0 is that around the page. */
typedef struct {
    const void *memory;
    uint64_t memory_count;
    const nd_frame *frames;
    uint64_t frame_count;
    const nd_style *styles;
    uint64_t style_count;
    const nd_generated *generated;
    uint64_t generated_count;
    const uint8_t *letters;
    uint64_t letter_count;
} nd_frames;

enum nd_piece_kind {
    ND_PIECE_BREAK,
    ND_PIECE_TEXT,
    ND_PIECE_INLINE_START,
    ND_PIECE_INLINE_END,
    ND_PIECE_BOX_START,
    ND_PIECE_BOX_END
};

/* A piece of a page, as of core.css.pieces. */
typedef struct {
    const uint8_t *text;
    uint32_t size;
    uint16_t layer;
    uint8_t kind, takes_room;
} nd_piece;

/* The pieces of a page, and the characters of each layer that has some, in the order of their first pieces. */
typedef struct {
    nd_story story; /* `doubt`, `unjudged_count` and `unjudged` are as of nd_read_story */
    const nd_piece *pieces;
    uint64_t piece_count, room_used, layer_count;
    uint64_t characters[ND_MOST_LAYERS];
    uint32_t layers[ND_MOST_LAYERS];
} nd_rendered;

/* Read the pieces of a page whose only body is its root.  They stand in the room, of which `room_used` bytes are used;
 * it is best eight times as large as the page.
 *
 * ND_UNSUPPORTED: see `out->story`.  For ND_UNJUDGED teach the memories, and call again.  A key of a frame is the
 * number of the style sheets, that of the style around the element, how many rules match it, and these, each in four
 * bytes; the name of its tag, and the names and values of the attributes that style it, each with a zero after it.  A
 * key of a variant is the number of a style and an nd_variant.  Reference: core.css.rendering. */
ND_API int64_t nd_render(const nd_lexbor *lexbor, const nd_page *page, const nd_sheets *sheets, const nd_frames *frames,
                         const void *verdicts, size_t verdict_bytes, uint8_t *room, size_t room_bytes, nd_rendered *out);

/* Write the text of some layers, with line breaks between the texts if there are several; returns its bytes, and
 * counts its characters as nd_count_characters does.  For each text, `layers` has ND_LAYERS bytes, which are 0 for
 * those that are left out.  ND_UNSUPPORTED: it is not UTF-8, has replacement characters, or overrides its direction.
 * Reference: core.css.pieces.write_text. */
ND_API int64_t nd_write_pieces(const nd_piece *pieces, uint64_t piece_count, const uint8_t *layers, uint64_t text_count,
                               uint8_t *room, size_t room_bytes, uint32_t *block_counts, uint16_t *block_numbers,
                               nd_characters *counts, uint64_t *characters);

/* ==== alignment.c: what two texts share ======================================================================== */

/* A text is here the hashes of its words in reading order, 2^30 words at most.  Words are counted from 0.
 *
 * The caller lends the functions room for their work and their result: `room`, at an address that 8 divides, of at
 * least as many bytes as nd_alignment_room says.  They touch little of it unless texts share much, so large room costs
 * nothing that is not mapped; it need not be cleared, and may be lent again.  They return ND_INVALID for less room.
 */

/* The bytes of room for two texts of so many words, or ND_INVALID for more than 2^30 words. */
ND_API int64_t nd_alignment_room(int64_t words_a, int64_t words_b);

/* Find the runs of equal words that form the blocks of two texts.
 *
 * Returns their number n, and leaves n rows of four int32 at the begin of the room: place in a, place in b, words,
 * number of the block.  They are in the order of the longer text; of two of one length, of that whose bytes compare as
 * less. Reference: core.verify.alignment.align. */
ND_API int64_t nd_aligned(const uint64_t *a, int64_t words_a, const uint64_t *b, int64_t words_b, void *room,
                          int64_t room_bytes);

typedef struct {
    const uint64_t *words;
    int64_t length;
} nd_words;

typedef struct {      /* of texts, or of sets, by their places in an array */
    int32_t a, b;
    int32_t at_least; /* equal words: texts whose blocks have fewer share nothing */
} nd_pair;

struct nd_copied {
    int64_t words;        /* equal words of all blocks, without repetitions */
    int64_t common_words; /* equal words that stand in common passages */
    int64_t longest_run;  /* words of the longest run that both share; -1 if the alignment did not find it */
    int64_t spans_a;      /* the number of spans of a */
    int64_t spans_b;
};

/* Find what the texts of m pairs share, apart from common passages, whose `commons` hashes ascend.
 *
 * Writes, for each pair, an nd_copied, and to `spans` its spans of a and then those of b: each as two int32, its first
 * word and the word after its last.  The room is that for the longest two texts.  Returns how many pairs were done:
 * fewer than m if there is no more room than `span_room` spans; ND_ROOM if these are too few for the first one.  There
 * are never more than a pair has words.  Reference: core.verify.alignment.find_copied_of_pairs. */
ND_API int64_t nd_copied_pairs(const nd_words *texts, int64_t n, const nd_pair *pairs, int64_t m, const uint32_t *common,
                               int64_t commons, struct nd_copied *copied, int32_t *spans, int64_t span_room, void *room,
                               int64_t room_bytes);

/* Which words of a text are apart from common passages, whose `commons` hashes ascend.
 *
 * Writes 1 or 0 for each word to `own`.  The room is that for this text and one of no words.  Returns 0.  Reference:
 * core.verify.alignment.are_own.
 */
ND_API int64_t nd_are_own(const uint64_t *words, int64_t length, const uint32_t *common, int64_t commons, uint8_t *own,
                          void *room, int64_t room_bytes);

/* The passage hashes of the sampled grams of a text, in its order; `hashes` has room for a number a word.
 *
 * The room is that for this text and one of no words.  Returns how many there are.
 * Reference: core.verify.alignment.sample_passages.
 */
ND_API int64_t nd_sampled_passages(const uint64_t *words, int64_t length, uint32_t *hashes, void *room,
                                   int64_t room_bytes);

/* ==== sets.c: sets of numbers, which ascend and are distinct; skeletons and their grams ======================== */

/* Count the hashes that the sets of each of m pairs share; `shared` has room for a number a pair.
 *
 * Returns m.  Reference: core.sets.count_shared_of_pairs.
 */
ND_API int64_t nd_count_shared_of_pairs(const nd_words *sets, int64_t n, const nd_pair *pairs, int64_t m, int64_t *shared);

typedef struct {
    const uint32_t *numbers;
    int64_t length;
} nd_numbers;

/* Count the numbers that the sets of each of m pairs share, apart from k `common` ones; `shared` is as above.
 *
 * Returns m.  Reference: core.sets.count_uncommon_of_pairs.
 */
ND_API int64_t nd_count_uncommon_of_pairs(const nd_numbers *sets, int64_t n, const nd_pair *pairs, int64_t m,
                                          const uint32_t *common, int64_t k, int64_t *shared);

/* The grams of the skeleton of a normalised text in UTF-8, in its order: each of `size` consonant classes, 1 to 10, of
 * three bits each, the first in the highest.
 *
 * `consonants` has, for each of `codes` code points, the class, 255 for none; the last entry serves all
 * beyond.  `entries` and `grams` have room for a number a byte.  Returns how many grams there are; ND_INVALID for bytes
 * that are not UTF-8.  Reference: core.verify.skeletons.pack_grams.
 */
ND_API int64_t nd_skeleton_grams(const uint8_t *text, int64_t bytes, const uint8_t *consonants, int64_t codes,
                                 int64_t size, uint8_t *entries, uint32_t *grams);

/* Write the skeleton of a normalised text: the classes of its consonants, and the place of the word that has each, for
 * which there is room for `bytes` of either; returns how many.  Bytes that are not UTF-8 are no consonants.
 * Reference: core.fingerprint.skeleton.find_skeleton_parts. */
ND_API int64_t nd_skeleton(const uint8_t *text, int64_t bytes, const uint8_t *consonants, int64_t codes, uint8_t *classes,
                           int32_t *words);

/* ==== candidates.c, key_join.c, passage_join.c: pairs of stories that are worth verifying ======================= */

/* The fingerprints of stories, a row for each. */
typedef struct {
    int64_t size;
    const uint8_t *languages;  /* numbers of languages */
    const uint64_t *simhashes; /* two words a story */
    const uint8_t *signatures; /* 64 bytes a story, zeros for one without */
    const uint8_t *is_signed;  /* whether it has a signature */
} nd_fingerprints;

/* Two stories of a language are alike if at most `hamming` bits of their SimHashes differ, or if they agree in
 * `agreeing_rows` rows of their signatures and share `shared_bands` of the first `bands` bands, at most 32.
 */
typedef struct {
    int64_t hamming;
    int64_t bands;
    int64_t shared_bands;
    int64_t agreeing_rows;
} nd_thresholds;

/* Score the pairs of stories[left[i]] and others[right[i]]: whether they are alike, the rows that agree, the bits that
 * differ.  Returns 0, or ND_INVALID for an index that is no story, or a language of `stories` without thresholds.
 * Reference: select.score_pairs.
 */
ND_API int64_t nd_score_pairs(const nd_fingerprints *stories, const nd_fingerprints *others, const int64_t *left,
                              const int64_t *right, int64_t pairs, const nd_thresholds *thresholds, int64_t languages,
                              uint8_t *is_alike, int64_t *rows, int64_t *bits);

/* The pairs of one of `stories` and one of `others` that are alike; if `is_inside`, `others` are `stories`, and the
 * pairs are of two of them.
 *
 * `cursor` (2,) begins as zeros.  Returns how many pairs were written, at most `room`.  The pairs are complete when
 * cursor[0] is the number of `stories`; call again until then.  ND_INVALID for a language of `stories` without
 * thresholds.  Reference: select.find_alike_pairs.
 */
ND_API int64_t nd_alike_pairs(const nd_fingerprints *stories, const nd_fingerprints *others,
                              const nd_thresholds *thresholds, int64_t languages, int64_t is_inside, int64_t *cursor,
                              int64_t *left, int64_t *right, int64_t *rows, int64_t *bits, int64_t room);

/* The pairs of one of `stories` and one of `others`, of any language, within the Hamming distance or that agree in
 * `least_rows` rows; `rows` are those that agree.  As nd_alike_pairs, but they are complete when cursor[0] is the
 * number of `others`.  Reference: select.close_pairs.
 */
ND_API int64_t nd_compare(const nd_fingerprints *stories, const nd_fingerprints *others, int64_t hamming,
                          int64_t least_rows, int64_t *cursor, int64_t *left, int64_t *right, int64_t *rows,
                          int64_t room);

/* A bucket join: the stories, the keys of one first band, where the join is, and its output. */
typedef struct {
    /* The stories: the value of each in each band, of 2 or 4 bytes; and its fingerprint of 16 or 64 bytes. */
    int64_t stories;
    int64_t bands; /* at most 32 */
    int64_t band_bytes;
    const void *band_values;
    int64_t width;
    const uint8_t *fingerprints;
    /* Runs of equal values in the first band: run r is members[edges[r]] to members[edges[r + 1]], sorted by the first
     * band other than the first one of the keys. */
    int64_t members_size;
    const int64_t *members;
    int64_t runs;
    const int64_t *edges; /* (runs + 1,) */
    /* The keys (first_band, second) for second in [start, stop), of bands of 2 bytes; or one key of one band, if start
     * is first_band. */
    int64_t first_band;
    int64_t start;
    int64_t stop;
    /* Pairs share min_bands bands or more and agree in min_bytes bytes of the fingerprints or more. */
    int64_t min_bands;
    int64_t min_bytes;
    /* Where the join is: it begins with run 0, second = start, and zeros. */
    int64_t run;
    int64_t second;
    int64_t next;
    int64_t is_prepared;
    /* Room for the members of the longest run, which only the join writes to. */
    int64_t work_size;
    int32_t *heads; /* (65536,), -1 at first */
    int32_t *links;
    int32_t *skips;
    uint16_t *values;
    /* Output: pairs of positions, left < right. */
    int64_t room; /* work_size or more */
    int64_t *left;
    int64_t *right;
} nd_join;

/* All pairs of stories that share a bucket, each once in the joins of all keys; see candidates.c for the algorithm.
 *
 * Finds pairs until all runs are joined, a tenth of a second has passed, or the room may not suffice for the next
 * member; returns how many.  The join is complete when `run` is `runs`; call again until then.  ND_INVALID for a member
 * that is no story, or keys, runs or rules that contradict each other.  Reference: all_pairs.join_runs, which gives
 * the same pairs in another order.
 */
ND_API int64_t nd_join_buckets(nd_join *join);

/* Stories sorted by key and then by id: bucket b is the rows from edges[b] to edges[b + 1], of the key keys[b], which
 * has its number among those of a story in bits 50 to 55.  If splits[b] is above 0, the first splits[b] rows are
 * compared with the others only.
 */
typedef struct {
    nd_fingerprints stories;
    const int64_t *ids;
    int64_t buckets;
    const int64_t *edges; /* (buckets + 1,) */
    const uint64_t *keys;
    const int64_t *splits;
    int64_t languages;
    const nd_thresholds *thresholds;
    const int64_t *group_edges; /* (languages, 10): the groups of 16-bit bands of a SimHash, and then their edges */
    const int64_t *max_matches; /* (languages,) */
} nd_key_join;

/* Room for pairs of rows, with the rows that agree and the bits that differ. */
typedef struct {
    int64_t room;
    int64_t *left;
    int64_t *right;
    int64_t *rows;
    int64_t *bits;
} nd_pairs;

/* The similar pairs whose key is that of the bucket, each later story with its best max_matches there.
 *
 * `cursor` (2,) begins as zeros, `left_out` (languages,) too: it counts the other matches.  Returns how many pairs were
 * written.  They are complete when cursor[0] is the number of buckets; call again until then.  `ranks` and `out` need
 * room for the matches of a story: max_matches, or the stories of the largest bucket if these are fewer.  ND_INVALID
 * for a bucket beyond the rows, a language without thresholds, groups that are no bands, or too few ranks.
 * Reference: key_pairs.find_pairs_in_buckets.
 */
ND_API int64_t nd_pairs_in_buckets(const nd_key_join *join, int64_t *cursor, int64_t *ranks, int64_t ranks_size,
                                   const nd_pairs *out, int64_t *left_out);

/* Stories sorted by a passage hash and then by id: bucket b is the rows from edges[b] to edges[b + 1], of hashes[b].
 * The shared hashes of row r are lists[ends[r]] to lists[ends[r + 1]], ascending.
 */
typedef struct {
    nd_fingerprints stories;
    const int64_t *ids;
    int64_t buckets;
    const int64_t *edges; /* (buckets + 1,) */
    const int64_t *hashes;
    int64_t lists_size;
    const int64_t *lists;
    const int64_t *ends; /* (rows + 1,) */
    int64_t languages;
    const nd_thresholds *thresholds;
    int64_t min_shared;
} nd_hash_join;

/* The pairs that share min_shared hashes or more, the first of them that of the bucket, and that are not alike.
 *
 * `cursor` (2,) and the return value are as in nd_pairs_in_buckets; `room` must suffice for the stories of the largest
 * bucket.  ND_INVALID for a bucket or a list beyond the rows, or a language without thresholds.
 * Reference: key_pairs.find_pairs_in_hash_buckets.
 */
ND_API int64_t nd_pairs_in_hash_buckets(const nd_hash_join *join, int64_t *cursor, int64_t *left, int64_t *right,
                                        int64_t *shared, int64_t room);

/* Hashes that too many stories hold, once for each of their languages: how many hold it, how many are too many, and one
 * of that language. */
typedef struct {
    int64_t size;
    int64_t room; /* as many as there are postings suffice */
    uint32_t *hashes;
    int64_t *holders;
    int64_t *surplus;
    uint32_t *examples;
} nd_common_hashes;

/* Cut sorted postings into groups: the size of each, 2 or more, followed by the stories that hold a hash, ascending.
 *
 * A posting is a passage hash in the upper half and a story number in the lower.  `language_of` maps the numbers below
 * `numbers` to languages, and `copy_keys` to copy keys; postings of those of language 255 and repeated ones are
 * ignored. A hash that more than `most` stories hold, or stories with more than `most_keys` different copy keys, makes
 * no group, and is added to `found`.  pairs_of[n] grows by the earlier members of the story n.  Returns the length of
 * the groups; ND_INVALID for a number that is not below `numbers`; ND_ROOM if `room` is less than size + size / 2 + 2,
 * or that of `found` does not suffice; ND_NO_MEMORY.  Reference: passage_groups.find_groups. */
ND_API int64_t nd_cut_into_groups(const uint64_t *postings, int64_t size, const uint8_t *language_of,
                                  const uint32_t *copy_keys, int64_t numbers, int64_t most_keys, int64_t most,
                                  uint32_t *pairs_of, uint32_t *groups, int64_t room, nd_common_hashes *found);

/* Append to the list of each story in [first, first + stories) the members before it of each of its groups.
 *
 * The lists are parts of `earlier`, which has room for `room` numbers, and `ends` (stories,) is where each ends; both
 * are updated.  Returns 0, or ND_INVALID for a group that is not ascending or not whole, or a list that would not fit.
 * Reference: passage_groups.list_earlier.
 */
ND_API int64_t nd_list_earlier(const uint32_t *groups, int64_t size, int64_t first, uint32_t *earlier, int64_t room,
                               int64_t *ends, int64_t stories);

/* The pairs that share `min_shared` hashes or more, of the stories from `first` on.
 *
 * The list of story first + n is earlier[ends[n]] to earlier[ends[n + 1]]; it is sorted.  `work` has room for the
 * longest list.  Returns how many pairs were written; ND_ROOM if there are more than `room`; ND_INVALID for a list that
 * is not in `earlier` or has no room in `work`.  Reference: passage_groups.count_shared.
 */
ND_API int64_t nd_count_shared(uint32_t *earlier, int64_t earlier_size, const int64_t *ends, int64_t stories,
                               int64_t first, int64_t min_shared, uint32_t *work, int64_t work_size, uint32_t *left,
                               uint32_t *right, int64_t *shared, int64_t room);

/* For each lookup, the numbers that occur `least` times or more, at least 1, in its buckets, ascending.
 *
 * Bucket b is members[edges[b]] to members[edges[b + 1]]; `lookups` (lookups_size, buckets) are the buckets of each.
 * The numbers of lookup i are found[ends[i]] to found[ends[i + 1]].  Returns how many lookups were made: it stops
 * before one whose members, divided by `least`, exceed the room that is left.  ND_INVALID for a bucket that does not
 * exist, or edges that do not ascend.  Allocates memory for the largest lookup: 10 bytes a member or more. Reference:
 * all_pairs.find_shared. */
ND_API int64_t nd_shared_by(const uint32_t *members, int64_t members_size, const int64_t *edges, int64_t edges_size,
                            const int64_t *lookups, int64_t lookups_size, int64_t buckets, int64_t least,
                            uint32_t *found, int64_t room, int64_t *ends);

/* ==== segments.c: lookups in the files of the passage index ==================================================== */

/* A segment of the passage index is an immutable file of sorted postings; a posting is a hash of 32 bits and the number
 * of a story.  neardup.index.passages.segment describes the file.
 */
enum { ND_SEGMENT_BLOCK = 4096 }; /* bytes; each block of a segment has a checksum, and is read whole */

/* How a segment writes its postings.  A field out of the range that stands beside it is ND_INVALID, or for a lookup,
 * which has it from a file, ND_DAMAGED. */
struct nd_coding {
    int32_t bucket_bits; /* 1 to 25: postings whose hashes have the same top bits are a bucket */
    int32_t head_bits;   /* 0 to 6: the next bits of a hash; the others are its low bits */
    int32_t number_bits; /* 1 to 32, for a number less `first` */
    uint32_t first;
};

/* An open segment.  Blocks are counted from the one after the header, at byte ND_SEGMENT_BLOCK of the file.  A field
 * out of the range that stands beside it is ND_DAMAGED. */
struct nd_segment {
    struct nd_coding coding;
    int32_t descriptor;       /* of the file, to be read with pread */
    uint64_t postings;        /* less than 2^32 */
    uint64_t postings_start;  /* byte of the file where they begin; at most 2^40 */
    uint64_t blocks;          /* at most 2^40 */
    const uint64_t *checksums; /* (blocks,) */
    uint8_t *verified;         /* (blocks,): 1 for a block whose checksum was right when it was read; set by lookups */
};

/* The XXH64 (seed 0) of each block of some bytes; `size` is a multiple of ND_SEGMENT_BLOCK.  `checksums` has room for
 * size / ND_SEGMENT_BLOCK.  Returns 0 or ND_INVALID.
 * Reference: neardup.index.passages.segment.block_checksums.
 */
ND_API int64_t nd_block_checksums(const uint8_t *content, int64_t size, uint64_t *checksums);

/* Write the postings of `buckets` buckets from `first_bucket` on, which `preceding` others precede; in all there are
 * less than 2^32.  A key is a posting's hash in the upper half of 64 bits and its number in the lower half; the keys
 * ascend.  `offsets` (buckets,) receives how many postings precede each bucket, and `content` (size,) their bytes; a
 * bucket b that p postings precede begins at byte (p * (1 + low bits + number bits) + b * (2^head_bits + 7)) / 8 of
 * those of the segment, and `size` is from where the first bucket begins to where the one after the last would.
 * Returns 0, or ND_INVALID, also for keys of other buckets or not in their order, and for a number that the coding has
 * no room for.
 * Reference: neardup.index.passages.postings.encode.
 */
ND_API int64_t nd_encode_postings(const struct nd_coding *coding, const uint64_t *keys, int64_t n, int64_t first_bucket,
                                  int64_t buckets, int64_t preceding, uint32_t *offsets, uint8_t *content,
                                  int64_t size);

/* The other way: `offsets` (buckets + 1,) say how many postings precede each bucket and the one after the last, and
 * `keys` (n = offsets[buckets] - offsets[0]) receives the keys.  Returns 0, or ND_INVALID, also for offsets that
 * descend or do not fit `size` and `n`, for heads that do not fit their bucket, and for a number that no segment can
 * have.
 * Reference: neardup.index.passages.postings.decode.
 */
ND_API int64_t nd_decode_postings(const struct nd_coding *coding, const uint8_t *content, int64_t size,
                                  int64_t first_bucket, const uint32_t *offsets, int64_t buckets, uint64_t *keys,
                                  int64_t n);

/* For each of n hashes: the bit of the file where the numbers of the stories that have it begin, and how many they
 * are.  Ascending hashes read a block of the directory once.  Returns 0, ND_INVALID, or ND_DAMAGED for a block that
 * cannot be read, has another checksum, or says what no segment says.
 * Reference: neardup.index.passages.segment.find.
 */
ND_API int64_t nd_find_postings(const struct nd_segment *segment, const uint32_t *hashes, int64_t n, int64_t *places,
                                int64_t *counts);

/* Write the `counts` numbers that begin at each of n places, as nd_find_postings gives them, one after the other, to
 * `numbers`, which has room for `room`.  Returns 0, ND_INVALID, also if `room` is not the sum of the counts, or
 * ND_DAMAGED likewise.
 * Reference: neardup.index.passages.segment.read_numbers.
 */
ND_API int64_t nd_read_numbers(const struct nd_segment *segment, const int64_t *places, const int64_t *counts,
                               int64_t n, uint32_t *numbers, int64_t room);

/* For each of n hashes: how many of the keys, which ascend, have a smaller hash, and how many have the same.  `n_keys`
 * is less than 2^32.  Returns 0 or ND_INVALID.
 * Reference: neardup.index.passages.postings.find_keys.
 */
ND_API int64_t nd_find_keys(const uint64_t *keys, int64_t n_keys, const uint32_t *hashes, int64_t n, int64_t *places,
                            int64_t *counts);

/* A filter of hashes has a bit for every 2^ND_UNUSED_BITS hashes, in ND_FILTER_BYTES bytes, which are 0 at first. */
enum { ND_UNUSED_BITS = 5, ND_FILTER_BYTES = 1 << (32 - ND_UNUSED_BITS - 3) };

/* Put n hashes into a filter of `size` bytes, or say for each whether the filter may hold it: `held` (n,) is 1 or 0.
 * One thread may put hashes in while others look.  Both return 0 or ND_INVALID.
 * References: neardup.index.passages.postings.put_in_filter and may_hold.
 */
ND_API int64_t nd_put_in_filter(uint8_t *filter, int64_t size, const uint32_t *hashes, int64_t n);
ND_API int64_t nd_filter_may_hold(const uint8_t *filter, int64_t size, const uint32_t *hashes, int64_t n,
                                  uint8_t *held);

/* ==== codes.c: nearest binary codes of vectors ================================================================= */

/* Compare n codes with each of some queries; both have `words` words, 1 to 512.  Row q of `places` and `distances`
 * (n_queries, most) has the nearest codes to query q so far by Hamming distance, ascending; of equal distances the one
 * scanned first comes first.  The codes have the places `first`, `first` + 1 and so on.  Those that are nearer than the
 * last one of a row are put into it, and the last one leaves it.  Returns 0 or ND_INVALID.
 * Reference: neardup.meaning.codes.scan.
 */
ND_API int64_t nd_scan_codes(const uint64_t *queries, int64_t n_queries, const uint64_t *codes, int64_t n,
                             int64_t words, int64_t first, int64_t most, int64_t *places, uint16_t *distances);

#endif
