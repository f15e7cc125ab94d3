/* The visible text of a parsed page, read by functions of the library that parsed it.
 *
 * A story of which nothing is hidden shows its text nodes in their order, apart from those in invisible elements, with
 * line breaks around blocks.  The first pass gathers the style sheets of the page, the second one looks for what may
 * hide a text of the story or show one in a way of its own, and the third one writes it.  Whether a value of an
 * attribute or a style sheet may hide a text is for the caller to judge, once for each value: verdicts are kept in a
 * hash table with open addressing, beside the values themselves, because authors could make two values with one hash.
 *
 * doubt() records why only the reference can read the page, and returns false. */
#include "tree.h"

enum { MOST_SHEET_BYTES = ND_VERDICT_BYTES / 8 };

/* ---- verdicts ---- */

int64_t nd_learn(
    void *verdicts, size_t verdict_bytes, uint64_t kind, const uint8_t *value, size_t size, uint64_t verdict) {
    uint8_t *memory = verdicts;
    Usage *usage = verdicts;
    if (verdict_bytes < ND_VERDICT_BYTES) return ND_INVALID;
    if (usage->slots >= MOST_SLOTS || usage->bytes > VALUE_BYTES || size > VALUE_BYTES - usage->bytes) return ND_ROOM;
    uint64_t hash = hash_value(kind, value, size);
    Slot *slot = (Slot *)slot_of(memory, hash, kind, value, size);
    if (!slot) return ND_ROOM;
    if (slot->hash) return 0;
    *slot = (Slot){hash, (uint32_t)usage->bytes, (uint32_t)size, (uint32_t)kind, (uint32_t)verdict};
    if (size) memcpy(memory + VALUES_AT + usage->bytes, value, size);
    usage->bytes += size;
    usage->slots++;
    return 0;
}

/* ---- what may hide a text ---- */

/* Whether a value is known to hide nothing, or has still to be judged. */
static bool may_pass(Reader *reader, enum nd_kind kind, const uint8_t *value, size_t size) {
    uint32_t verdict = verdict_on(reader->verdicts, kind, value, size, reader->out);
    return verdict == UNKNOWN || !verdict || doubt(reader, ND_STYLED);
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
static bool attributes_may_pass(Reader *reader, nd_node *element, unsigned tag_classes, bool is_around) {
    const nd_lexbor *lexbor = reader->lexbor;
    nd_attribute *first = lexbor->first_attribute(element), *attribute;
    bool is_looked_at = tag_classes & (ND_ATTRIBUTED | ND_FRAME);
    size_t size = 0;
    for (attribute = first; attribute; attribute = lexbor->next_attribute(attribute)) {
        const uint8_t *spelled = lexbor->name(attribute, &size);
        enum name name = spelled ? name_of(spelled, size) : OTHER;
        if (name == PAGE && tag_classes & ND_FRAME) return doubt(reader, ND_PAGE_WITHIN);
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

/* Gather the style sheets of the page, wherever they stand, and say whether they may act.  Whether they act on the
 * story is for the caller to find, so they leave no doubt. */
static bool look_at_sheets(Reader *reader) {
    const nd_page *page = reader->page;
    nd_story *out = reader->out;
    const uint8_t *sheets = reader->at;
    for (nd_node *node = page->root; node; node = next_below(reader->lexbor, page->root, node)) {
        if (reader->lexbor->type(node) != ELEMENT) continue;
        unsigned tag_classes = tag_classes_of(reader, node);
        if (tag_classes & ND_STYLE && !append_sheet(reader, node)) return false;
        if (tag_classes & ND_LINK && holds_document(reader, node)) out->has_acting_sheets = 1;
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
        unsigned tag_classes = tag_classes_of(reader, node);
        if (tag_classes & (ND_INVISIBLE | ND_SUPERSCRIPT)) return doubt(reader, ND_UNSEEN_STORY);
        if (tag_classes & ND_PECULIAR) return doubt(reader, ND_PECULIAR_TAG);
        if (!attributes_may_pass(reader, node, tag_classes, true)) return false;
    }
    return true;
}

static bool look_within(Reader *reader, nd_node *body, uint64_t *annotations) {
    const nd_page *page = reader->page;
    size_t size = 0;
    for (nd_node *node = body; node; node = next_below(reader->lexbor, body, node)) {
        if (reader->lexbor->type(node) != ELEMENT) continue;
        unsigned tag_classes = tag_classes_of(reader, node);
        if (node == body && tag_classes & (ND_INVISIBLE | ND_SUPERSCRIPT)) return doubt(reader, ND_UNSEEN_STORY);
        if (tag_classes & ND_PECULIAR) return doubt(reader, ND_PECULIAR_TAG);
        if (tag_classes & ND_ANNOTATION && ++*annotations > page->most_annotations) return doubt(reader, ND_ANNOTATED);
        if (!attributes_may_pass(reader, node, tag_classes, false)) return false;
        if (tag_classes & ND_LIST) {
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

/* Whether a superscript marks a footnote, see core.css.generated_text.marks_footnote. */
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
            unsigned tag_classes = tag_classes_of(reader, node);
            if (tag_classes & ND_BREAK && !append(reader, "\n", 1)) return false;
            enum marker marker = NO_MARKER;
            is_shown = !(tag_classes & ND_INVISIBLE);
            if (is_shown && tag_classes & ND_SUPERSCRIPT) marker = marker_of(reader, node);
            if (marker == UNSURE) return doubt(reader, ND_ANNOTATED);
            is_shown &= marker == NO_MARKER;
        }
        next = is_shown ? lexbor->first_child(node) : NULL;
        while (!next) { /* leave nodes */
            if (node == body) return true;
            bool is_block = lexbor->type(node) == ELEMENT && tag_classes_of(reader, node) & ND_BREAK;
            if (is_block && !append(reader, "\n", 1)) return false;
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
