/* The visible text of a parsed page, read by functions of the library that parsed it.
 *
 * A story of which nothing is hidden shows its text nodes in their order, apart from those in invisible elements, with line
 * breaks around blocks.  The first pass gathers the style sheets of the page, the second one looks for what may hide a
 * text of the story or show one in a way of its own, and the third one writes it.  Whether a value of an attribute or a style sheet may hide a text is for
 * the caller to judge, once for each value: verdicts are kept in a hash table with open addressing, beside the values
 * themselves, because authors could make two values with one hash.
 */
#include <stdbool.h>

#include "internal.h"
#include "xxh3.h"

enum {
    ELEMENT = 1, /* types of nodes */
    TEXT = 3,
    DOCUMENT = 9,
    MOST_SHEET_BYTES = ND_VERDICT_BYTES / 8,
};

/* ---- verdicts ---- */

typedef struct {
    uint64_t hash; /* 0 for a slot that is free */
    uint32_t offset, size, kind, may_hide;
} Slot;

typedef struct {
    uint64_t slots, bytes; /* used */
} Usage;

enum {
    VALUES_AT = sizeof(Usage) + ND_VERDICT_SLOTS * sizeof(Slot),
    VALUE_BYTES = ND_VERDICT_BYTES - VALUES_AT,
    MOST_SLOTS = ND_VERDICT_SLOTS / 2,
};

static uint64_t hash_value(uint64_t kind, const uint8_t *value, size_t size) {
    return mix((size ? hash_word(value, size).low : 0) + kind) | 1;
}

/* The slot of a value, or the free one where it belongs; NULL if there is none, as in a memory that is damaged. */
static const Slot *slot_of(const uint8_t *memory, uint64_t hash, uint64_t kind, const uint8_t *value, size_t size) {
    const Slot *slots = (const Slot *)(memory + sizeof(Usage));
    for (size_t n = 0; n < ND_VERDICT_SLOTS; n++) {
        const Slot *slot = slots + (hash + n) % ND_VERDICT_SLOTS;
        if (!slot->hash) return slot;
        if (slot->hash != hash || slot->kind != kind || slot->size != size) continue;
        if (slot->offset > VALUE_BYTES || slot->size > VALUE_BYTES - slot->offset) return NULL;
        if (!size || !memcmp(memory + VALUES_AT + slot->offset, value, size)) return slot;
    }
    return NULL;
}

int64_t nd_learn(
    void *verdicts, size_t verdict_bytes, uint64_t kind, const uint8_t *value, size_t size, uint64_t may_hide) {
    uint8_t *memory = verdicts;
    Usage *usage = verdicts;
    if (verdict_bytes < ND_VERDICT_BYTES) return ND_INVALID;
    if (usage->slots >= MOST_SLOTS || usage->bytes > VALUE_BYTES || size > VALUE_BYTES - usage->bytes) return ND_ROOM;
    uint64_t hash = hash_value(kind, value, size);
    Slot *slot = (Slot *)slot_of(memory, hash, kind, value, size);
    if (!slot) return ND_ROOM;
    if (slot->hash) return 0;
    *slot = (Slot){hash, (uint32_t)usage->bytes, (uint32_t)size, (uint32_t)kind, may_hide != 0};
    if (size) memcpy(memory + VALUES_AT + usage->bytes, value, size);
    usage->bytes += size;
    usage->slots++;
    return 0;
}

/* ---- the tree ---- */

typedef struct {
    const nd_lexbor *lexbor;
    const nd_page *page;
    nd_document *document;
    const uint8_t *verdicts;
    uint8_t *at, *end; /* the room that is left */
    nd_story *out;
} Reader;

static unsigned classes_of(const Reader *reader, nd_node *element) {
    uintptr_t tag = reader->lexbor->tag(element);
    return tag < reader->page->tag_count ? reader->page->tags[tag] : 0;
}

/* The next node below the root in the order of the page; NULL after the last one. */
static nd_node *next_below(const nd_lexbor *lexbor, nd_node *root, nd_node *node) {
    nd_node *next = lexbor->first_child(node);
    while (!next && node != root) {
        next = lexbor->next(node);
        if (!next) node = lexbor->parent(node);
    }
    return next;
}

/* Returns false. */
static bool doubt(Reader *reader, enum nd_doubt reason) {
    reader->out->doubt = reason;
    return false;
}

static bool append(Reader *reader, const void *bytes, size_t size) {
    if ((size_t)(reader->end - reader->at) < size) return doubt(reader, ND_LARGE);
    memcpy(reader->at, bytes, size);
    reader->at += size;
    return true;
}

/* Append the text of a node and of all below it. */
static bool append_text(Reader *reader, nd_node *node) {
    size_t size = 0;
    uint8_t *text = reader->lexbor->text(node, &size);
    if (!text) return true;
    bool has_room = append(reader, text, size);
    reader->lexbor->free_text(reader->document, text);
    return has_room;
}

/* The text of a node, which is left in the room to be read; NULL if there is too little room. */
static const uint8_t *peek_text(Reader *reader, nd_node *node, size_t *size) {
    uint8_t *start = reader->at;
    if (!append_text(reader, node)) return NULL;
    *size = (size_t)(reader->at - start);
    reader->at = start;
    return start;
}

/* ---- what may hide a text ---- */

/* Whether a value is known to hide nothing, or has still to be judged. */
static bool may_pass(Reader *reader, enum nd_kind kind, const uint8_t *value, size_t size) {
    nd_story *out = reader->out;
    const Slot *slot = slot_of(reader->verdicts, hash_value(kind, value, size), kind, value, size);
    if (slot && slot->hash) return !slot->may_hide || doubt(reader, ND_STYLED);
    for (uint64_t n = 0; n < out->unjudged_count; n++) {
        const nd_unjudged *other = out->unjudged + n;
        if (other->kind == kind && other->size == size && !memcmp(other->value, value, size)) return true;
    }
    if (out->unjudged_count < ND_MOST_UNJUDGED) out->unjudged[out->unjudged_count++] = (nd_unjudged){value, size, kind};
    return true;
}

enum name { OTHER, STYLE, HIDING, BGCOLOR, HINT, ADDRESS, DATA, SHOWN, PAGE };

#define IS(text) (size == sizeof text - 1 && !memcmp(name, text, sizeof text - 1))

/* What an attribute of this name does.  Only a few lengths are those of such names. */
static enum name name_of(const uint8_t *name, size_t size) {
    switch (size) {
    case 3: return IS("dir") ? HINT : IS("src") ? ADDRESS : IS("alt") ? SHOWN : OTHER;
    case 4: return IS("href") ? ADDRESS : IS("data") ? DATA : IS("text") ? HINT : OTHER;
    case 5: return IS("style") ? STYLE : IS("color") ? HINT : IS("value") ? SHOWN : OTHER;
    case 6: return IS("hidden") ? HIDING : IS("srcset") ? ADDRESS : IS("srcdoc") ? PAGE : OTHER;
    case 7: return IS("bgcolor") ? BGCOLOR : IS("popover") ? HIDING : OTHER;
    case 11: return IS("placeholder") ? SHOWN : OTHER;
    case 14: return IS("shadowrootmode") ? PAGE : OTHER;
    default: return OTHER;
    }
}

/* Whether a text begins like another one, which is in lower case, whatever the case of its own letters. */
static bool begins(const uint8_t *text, size_t size, const char *lower) {
    for (; *lower; lower++, text++, size--)
        if (!size || (*text >= 'A' && *text <= 'Z' ? *text | 0x20 : *text) != *lower) return false;
    return true;
}

/* Whether an address may be a page or a picture of text; `is_object` takes any document for one. */
static bool may_be_page(const uint8_t *address, size_t size, bool is_object) {
    while (size && (*address <= ' ' || *address >= 0x80)) {
        address++;
        size--;
    }
    if (!begins(address, size, "data:")) return false;
    address += 5;
    size -= 5;
    return is_object || begins(address, size, "text/") || begins(address, size, ",") || begins(address, size, ";") ||
           begins(address, size, "image/svg");
}

/* The code points of a text, of which broken bytes count as one each. */
static size_t count_codes(const uint8_t *text, size_t size) {
    const uint8_t *end = text + size;
    size_t count = 0;
    for (uint32_t bytes; text < end; text += bytes) {
        code_at(text, end, &bytes);
        count++;
    }
    return count;
}

static bool is_longer(const uint8_t *text, size_t size, uint64_t limit) {
    return size > limit && count_codes(text, size) > limit;
}

static bool is_utf8(const uint8_t *text, size_t size) {
    const uint8_t *end = text + size;
    for (uint32_t bytes; text < end; text += bytes)
        if (code_at(text, end, &bytes) == BAD) return false;
    return true;
}

/* The kind of a value of which only the caller can tell what it does. */
static enum nd_kind kind_of(enum name name, const uint8_t *spelled, bool is_around) {
    if (name == STYLE) return is_around ? ND_STYLE_AROUND : ND_STYLE_VALUE;
    switch (*spelled) {
    case 'b': return ND_BGCOLOR_VALUE;
    case 'c': return ND_COLOR_VALUE;
    case 't': return ND_TEXT_VALUE;
    default: return ND_DIR_VALUE;
    }
}

static bool attribute_may_pass(
    Reader *reader, enum name name, enum nd_kind kind, const uint8_t *value, size_t size) {
    switch (name) {
    case HIDING: return doubt(reader, ND_HIDDEN);
    case ADDRESS:
    case DATA: return !may_be_page(value, size, name == DATA) || doubt(reader, ND_PAGE_WITHIN);
    case SHOWN: return !is_longer(value, size, reader->page->long_attribute) || doubt(reader, ND_LONG_TEXT);
    case STYLE:
    case BGCOLOR:
    case HINT: return is_utf8(value, size) ? may_pass(reader, kind, value, size) : doubt(reader, ND_STYLED);
    default: return true;
    }
}

/* Whether the attributes of an element hide nothing, as far as is known; one `is_around` the story, or in it. */
static bool attributes_may_pass(Reader *reader, nd_node *element, unsigned classes, bool is_around) {
    const nd_lexbor *lexbor = reader->lexbor;
    nd_attribute *first = lexbor->first_attribute(element), *attribute;
    bool is_looked_at = classes & (ND_ATTRIBUTED | ND_FRAME);
    size_t size = 0;
    for (attribute = first; attribute; attribute = lexbor->next_attribute(attribute)) {
        const uint8_t *spelled = lexbor->name(attribute, &size);
        enum name name = spelled ? name_of(spelled, size) : OTHER;
        if (name == PAGE && classes & ND_FRAME) return doubt(reader, ND_PAGE_WITHIN);
        is_looked_at |= name == STYLE || name == HIDING || name == BGCOLOR;
    }
    if (!is_looked_at) return true;
    for (attribute = first; attribute; attribute = lexbor->next_attribute(attribute)) {
        const uint8_t *spelled = lexbor->name(attribute, &size);
        enum name name = spelled ? name_of(spelled, size) : OTHER;
        if (name == OTHER) continue;
        size = 0;
        const uint8_t *value = lexbor->value(attribute, &size);
        if (!value) {
            value = (const uint8_t *)"";
            size = 0;
        }
        if (!attribute_may_pass(reader, name, kind_of(name, spelled, is_around), value, size)) return false;
    }
    return true;
}

/* Append a style sheet, and the attributes that say where it applies, to those before it. */
static bool append_sheet(Reader *reader, nd_node *element) {
    const nd_lexbor *lexbor = reader->lexbor;
    nd_attribute *attribute = lexbor->first_attribute(element);
    for (; attribute; attribute = lexbor->next_attribute(attribute)) {
        size_t name_size = 0, size = 0;
        const uint8_t *name = lexbor->name(attribute, &name_size), *value = lexbor->value(attribute, &size);
        if (!append(reader, name, name ? name_size : 0) || !append(reader, "\0", 1)) return false;
        if (!append(reader, value ? value : (const uint8_t *)"", value ? size : 0) || !append(reader, "\0", 1)) return false;
    }
    return append(reader, "\1", 1) && append_text(reader, element) && append(reader, "\0", 1);
}

/* Whether a link has a document in its address, which may be a style sheet. */
static bool holds_document(Reader *reader, nd_node *link) {
    const nd_lexbor *lexbor = reader->lexbor;
    nd_attribute *attribute = lexbor->first_attribute(link);
    for (size_t size = 0; attribute; attribute = lexbor->next_attribute(attribute)) {
        const uint8_t *name = lexbor->name(attribute, &size);
        if (!name || !IS("href")) continue;
        const uint8_t *value = lexbor->value(attribute, &size);
        if (value && may_be_page(value, size, true)) return true;
    }
    return false;
}

/* Gather the style sheets of the page, wherever they stand, and say whether they may act. */
static bool look_at_sheets(Reader *reader) {
    const nd_page *page = reader->page;
    nd_story *out = reader->out;
    const uint8_t *sheets = reader->at;
    for (nd_node *node = page->root; node; node = next_below(reader->lexbor, page->root, node)) {
        if (reader->lexbor->type(node) != ELEMENT) continue;
        unsigned classes = classes_of(reader, node);
        if (classes & ND_STYLE && !append_sheet(reader, node)) return false;
        if (classes & ND_LINK && holds_document(reader, node)) out->has_acting_sheets = 1;
    }
    size_t size = (size_t)(reader->at - sheets);
    if (!size) return true;
    if (size > MOST_SHEET_BYTES) {
        out->has_acting_sheets = 1;
        return true;
    }
    if (!may_pass(reader, ND_SHEETS, sheets, size)) out->has_acting_sheets = 1;
    out->doubt = ND_NO_DOUBT;
    return true;
}

static bool look_around(Reader *reader, nd_node *body) {
    nd_node *node = reader->lexbor->parent(body);
    for (; node && reader->lexbor->type(node) == ELEMENT; node = reader->lexbor->parent(node)) {
        unsigned classes = classes_of(reader, node);
        if (classes & (ND_INVISIBLE | ND_SUPERSCRIPT)) return doubt(reader, ND_UNSEEN_STORY);
        if (classes & ND_PECULIAR) return doubt(reader, ND_PECULIAR_TAG);
        if (!attributes_may_pass(reader, node, classes, true)) return false;
    }
    return true;
}

static bool look_within(Reader *reader, nd_node *body, uint64_t *annotations) {
    const nd_page *page = reader->page;
    size_t size = 0;
    for (nd_node *node = body; node; node = next_below(reader->lexbor, body, node)) {
        if (reader->lexbor->type(node) != ELEMENT) continue;
        unsigned classes = classes_of(reader, node);
        if (node == body && classes & (ND_INVISIBLE | ND_SUPERSCRIPT)) return doubt(reader, ND_UNSEEN_STORY);
        if (classes & ND_PECULIAR) return doubt(reader, ND_PECULIAR_TAG);
        if (classes & ND_ANNOTATION && ++*annotations > page->most_annotations) return doubt(reader, ND_ANNOTATED);
        if (!attributes_may_pass(reader, node, classes, false)) return false;
        if (classes & ND_LIST) {
            const uint8_t *text = peek_text(reader, node, &size);
            if (!text) return false;
            if (is_longer(text, size, page->long_list)) return doubt(reader, ND_LONG_TEXT);
        }
    }
    return true;
}

/* Look for what may hide a text of the story, or show one in a way of its own; false with a doubt. */
static bool look_at_story(Reader *reader) {
    const nd_page *page = reader->page;
    nd_node *parent = NULL;
    uint64_t annotations = 0;
    for (uint64_t n = 0; n < page->body_count; n++) {
        nd_node *parent_before = parent;
        parent = reader->lexbor->parent(page->bodies[n]);
        if (parent != parent_before && !look_around(reader, page->bodies[n])) return false;
        if (!look_within(reader, page->bodies[n], &annotations)) return false;
    }
    return !reader->out->unjudged_count || doubt(reader, ND_UNJUDGED);
}

/* ---- the story ---- */

static bool is_letter(uint8_t byte) { return (byte | 0x20u) - 'a' < 26; }

enum marker { NO_MARKER, MARKER, UNSURE };

/* Whether a superscript marks a footnote, see core.css.generated_text.is_marker. */
static enum marker marker_of(Reader *reader, nd_node *superscript) {
    nd_node *after = reader->lexbor->next(superscript);
    size_t size = 0, letters = 0;
    if (after && reader->lexbor->type(after) == TEXT) {
        const uint8_t *text = peek_text(reader, after, &size);
        if (!text || (size && *text >= 0x80)) return UNSURE;
        if (size && is_letter(*text)) return NO_MARKER;
    }
    const uint8_t *text = peek_text(reader, superscript, &size);
    if (!text) return UNSURE;
    for (size_t n = 0; n < size; n++) {
        if (text[n] >= 0x80) return UNSURE;
        letters += is_letter(text[n]);
    }
    return letters <= 1 ? MARKER : NO_MARKER;
}

/* Write the text of an element that is seen; false with a doubt. */
static bool write_text(Reader *reader, nd_node *body) {
    const nd_lexbor *lexbor = reader->lexbor;
    nd_node *node = body, *next;
    while (true) { /* enter a node */
        bool is_shown = true;
        int type = lexbor->type(node);
        if (type == TEXT && !append_text(reader, node)) return false;
        if (type == ELEMENT && node != body) {
            unsigned classes = classes_of(reader, node);
            if (classes & ND_BREAK && !append(reader, "\n", 1)) return false;
            enum marker marker = NO_MARKER;
            is_shown = !(classes & ND_INVISIBLE);
            if (is_shown && classes & ND_SUPERSCRIPT) marker = marker_of(reader, node);
            if (marker == UNSURE) return doubt(reader, ND_ANNOTATED);
            is_shown &= marker == NO_MARKER;
        }
        next = is_shown ? lexbor->first_child(node) : NULL;
        while (!next) { /* leave nodes */
            if (node == body) return true;
            if (lexbor->type(node) == ELEMENT && classes_of(reader, node) & ND_BREAK && !append(reader, "\n", 1)) return false;
            next = lexbor->next(node);
            if (!next) node = lexbor->parent(node);
        }
        node = next;
    }
}

static bool write_story(Reader *reader) {
    const nd_page *page = reader->page;
    for (uint64_t n = 0; n < page->body_count; n++) {
        if (n && !append(reader, "\n", 1)) return false;
        if (!write_text(reader, page->bodies[n])) return false;
    }
    return true;
}

/* Whether a text has a sign that only the reference handles: a replacement character, or an override of direction. */
static bool has_doubtful_sign(const uint8_t *text, size_t size) {
    const uint8_t *end = text + size, *at;
    for (at = text; (at = memchr(at, 0xEF, (size_t)(end - at))); at++)
        if (end - at > 2 && at[1] == 0xBF && at[2] == 0xBD) return true;
    for (at = text; (at = memchr(at, 0xE2, (size_t)(end - at))); at++)
        if (end - at > 2 && at[1] == 0x80 && (at[2] == 0xAD || at[2] == 0xAE)) return true;
    return false;
}

/* ---- a text with single spaces ---- */

/* As str.isspace of Python. */
static bool is_white_space(uint32_t code) {
    if (code < 0x80) return code == ' ' || (code >= '\t' && code <= '\r') || (code >= 0x1C && code <= 0x1F);
    if (code < 0x1680) return code == 0x85 || code == 0xA0;
    return code == 0x1680 || (code >= 0x2000 && code <= 0x200A) || code == 0x2028 || code == 0x2029 || code == 0x202F ||
           code == 0x205F || code == 0x3000;
}

/* White space of HTML, or a vertical tab. */
static bool is_html_space(uint8_t byte) {
    return byte == ' ' || (byte >= '\t' && byte <= '\r');
}

/* Write a text with single spaces in place of runs of white space, and a line feed for each vertical tab; returns its bytes,
 * and adds its code points that are no white space to `visible`. */
static size_t write_spaced(const uint8_t *text, size_t size, uint8_t *room, uint64_t *visible) {
    const uint8_t *end = text + size;
    uint8_t *at = room;
    while (text < end) {
        const uint8_t *word = text;
        for (uint32_t bytes; text < end && !is_html_space(*text); text++) {
            *visible += !continues(*text);
            if (RARE(*text < 0x20)) *visible -= is_white_space(*text);
            if (RARE(*text == 0xC2 || (*text >= 0xE1 && *text <= 0xE3))) /* lead bytes of white space */
                *visible -= is_white_space(code_at(text, end, &bytes));
        }
        memcpy(at, word, (size_t)(text - word));
        at += text - word;
        bool is_break = false;
        for (word = text; text < end && is_html_space(*text); text++) is_break |= *text == '\v';
        if (!is_break && text > word) *at++ = ' ';
        for (bool after_space = false; is_break && word < text; word++) {
            if (*word == '\v')
                *at++ = '\n';
            else if (!after_space)
                *at++ = ' ';
            after_space = *word != '\v';
        }
    }
    return (size_t)(at - room);
}

/* ---- the functions of the library ---- */

int64_t nd_read_story(const nd_lexbor *lexbor, const nd_page *page, const void *verdicts, size_t verdict_bytes,
                      uint8_t *room, size_t room_bytes, uint32_t *block_counts, uint16_t *block_numbers,
                      nd_characters *counts, nd_story *out) {
    nd_node *parent = lexbor->parent(page->root);
    out->doubt = ND_NO_DOUBT;
    out->unjudged_count = out->has_acting_sheets = 0;
    if (verdict_bytes < ND_VERDICT_BYTES || !parent || lexbor->type(parent) != DOCUMENT) return ND_INVALID;
    Reader reader = {lexbor, page, (nd_document *)parent, verdicts, room, room + room_bytes, out};
    if (!look_at_sheets(&reader) || !look_at_story(&reader)) return ND_UNSUPPORTED;
    reader.at = room;
    if (!write_story(&reader)) return ND_UNSUPPORTED;
    size_t bytes = (size_t)(reader.at - room);
    int64_t characters = nd_count_characters(room, bytes, block_counts, block_numbers, counts);
    if (characters < 0 || (counts->unusual && has_doubtful_sign(room, bytes))) {
        doubt(&reader, ND_UNREADABLE);
        return ND_UNSUPPORTED;
    }
    out->text = room;
    out->characters = (uint64_t)characters;
    return (int64_t)bytes;
}

int64_t nd_spaced_text(const nd_lexbor *lexbor, nd_node *element, uint8_t *room, size_t room_bytes, uint64_t *visible) {
    nd_node *document = element, *parent;
    while ((parent = lexbor->parent(document))) document = parent;
    if (lexbor->type(document) != DOCUMENT) return ND_INVALID;
    size_t size = 0;
    uint8_t *text = lexbor->text(element, &size);
    *visible = 0;
    if (!text) return 0;
    int64_t bytes = size > room_bytes ? ND_ROOM : (int64_t)write_spaced(text, size, room, visible);
    lexbor->free_text((nd_document *)document, text);
    return bytes;
}

int64_t nd_is_plain(const uint8_t *page, size_t bytes, uint64_t most_tags) {
    uint64_t tags = 0, noise = 0, spaces = 0, zeros = 0;
    for (size_t n = 0; n < bytes;) {
        size_t end = bytes - n > 255 ? n + 255 : bytes;
        uint8_t tags_here = 0, noise_here = 0, spaces_here = 0, zeros_here = 0; /* bytes, of which a vector holds many */
        for (; n < end; n++) {
            uint8_t byte = page[n];
            uint8_t is_space = (byte == ' ') | ((uint8_t)(byte - '\t') < 5);
            uint8_t is_control = ((byte < ' ') & (is_space ^ 1)) | (byte == 0x7F);
            tags_here += byte == '<';
            noise_here += is_control | (byte == 0xC2) | (byte == 0xEF); /* lead bytes of what is noise in UTF-8 */
            spaces_here += is_space;
            zeros_here += byte == 0;
        }
        tags += tags_here;
        noise += noise_here;
        spaces += spaces_here;
        zeros += zeros_here;
    }
    if (spaces == bytes || zeros) return 0;
    return tags <= most_tags && (double)noise <= 0.02 * (double)bytes / 4; /* a character has at most 4 bytes */
}
