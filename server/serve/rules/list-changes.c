/* list-changes.c -- the changes that people make to lists by hand. */
#include "server/serve/rules/list-changes.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/digit.h"
#include "server/base/file.h"
#include "match/key-template.h"
#include "server/base/digest.h"
#include "wire/text.h"

#define VERSION_LINE "weir lists 1"
#define HEAD_SIZE \
    (sizeof(VERSION_LINE) + sizeof("checksum") + 17) /* both lines above the entries */
#define FILE_MAX ((size_t)WEIR__LIST_CHANGES_MAX * (3 * WEIR__LIST_CHANGES_ENTRY_MAX + 128))

static int no_memory(struct weir_error *error)
{
    return weir__fail(error, WEIR_NO_MEMORY, "no memory for the lists changed by hand");
}

struct weir__list_changes *weir__list_changes_create(void)
{
    return calloc(1, sizeof(struct weir__list_changes));
}

void weir__list_changes_destroy(struct weir__list_changes *changes)
{
    if (changes == NULL)
        return;
    for (size_t i = 0; i < changes->n; i++)
        free(changes->entries[i].entry);
    free(changes->entries);
    free(changes);
}

/* ------------------------------------------------------------- entries ---- */

/* One is the same however it was written: 10.0.0.1/32 is 10.0.0.1. */
static int tidy(char out[WEIR__LIST_CHANGES_ENTRY_MAX + 1], const char *attribute,
                const char *entry, struct weir_error *error)
{
    size_t len = strlen(entry);
    struct weir__cidr cidr;

    if (len > WEIR__LIST_CHANGES_ENTRY_MAX)
        return weir__fail(error, WEIR_INVALID,
                          "an entry of a list has at most %d bytes, and this one has %zu",
                          WEIR__LIST_CHANGES_ENTRY_MAX, len);
    if (!weir__attribute_is_address(attribute)) {
        memcpy(out, entry, len + 1);
        return weir__list_check_value(attribute, entry, len, error);
    }
    int code = weir__cidr_parse(entry, len, &cidr, error);
    if (code != WEIR_OK)
        return code;
    int printed = weir__address_print(out, WEIR__LIST_CHANGES_ENTRY_MAX, &cidr.address);
    if (cidr.prefix < cidr.address.bits)
        snprintf(out + printed, (size_t)(WEIR__LIST_CHANGES_ENTRY_MAX - printed), "/%u",
                 cidr.prefix);
    return WEIR_OK;
}

/* The entry, then the two names, in one piece. */
static bool copy_entry(struct weir__list_changes_entry *out,
                       const struct weir__list_changes_entry *from)
{
    size_t entry = strlen(from->entry) + 1, list = strlen(from->list) + 1,
           attribute = strlen(from->attribute) + 1;
    char *piece = malloc(entry + list + attribute);

    if (piece == NULL)
        return false;
    memcpy(piece, from->entry, entry);
    memcpy(piece + entry, from->list, list);
    memcpy(piece + entry + list, from->attribute, attribute);
    *out = (struct weir__list_changes_entry){ piece + entry, piece + entry + list, piece,
                                              from->added, from->turn };
    return true;
}

/* Room for n entries, and as yet those of `from`. */
static struct weir__list_changes *make_room(const struct weir__list_changes *from, size_t n)
{
    struct weir__list_changes *made = weir__list_changes_create();

    if (made != NULL && (made->entries = calloc(n + 1, sizeof(*made->entries))) != NULL) {
        while (made->n < from->n && copy_entry(&made->entries[made->n], &from->entries[made->n]))
            made->n++;
        if (made->n == from->n)
            return made;
    }
    weir__list_changes_destroy(made);
    return NULL;
}

static int add_entry(struct weir__list_changes *to, const char *list, const char *attribute,
                     const char *entry, bool added, struct weir_error *error)
{
    char text[WEIR__LIST_CHANGES_ENTRY_MAX + 1];
    int code = tidy(text, attribute, entry, error);
    struct weir__list_changes_entry raw = { list, attribute, text, added, to->n };

    if (code == WEIR_OK && !copy_entry(&to->entries[to->n], &raw))
        code = no_memory(error);
    to->n += code == WEIR_OK;
    return code;
}

static int compare_place(const struct weir__list_changes_entry *a,
                         const struct weir__list_changes_entry *b)
{
    int order = strcmp(a->list, b->list);

    order = order ? order : strcmp(a->attribute, b->attribute);
    return order ? order : strcmp(a->entry, b->entry);
}

static int compare(const void *left, const void *right)
{
    const struct weir__list_changes_entry *a = left, *b = right;
    int order = compare_place(a, b);

    return order ? order : (a->turn > b->turn) - (a->turn < b->turn);
}

/* ---------------------------------------------------------------- edit ---- */

static int compare_texts(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static bool is_written(const struct weir__lists *written, const struct weir__list_changes_entry *e)
{
    int at = weir__lists_find(written, e->list, e->attribute);

    if (at < 0 || written->lists[at].n == 0)
        return false;
    return bsearch(&e->entry, written->lists[at].entries, written->lists[at].n, sizeof(char *),
                   compare_texts) != NULL;
}

/* Sorts, and keeps of each entry the latest word; with `written` (may be NULL) only
 * removals of entries that are there, among those said now. */
static void settle(struct weir__list_changes *o, const struct weir__lists *written, size_t before)
{
    size_t kept = 0;

    if (o->n > 1)
        qsort(o->entries, o->n, sizeof(*o->entries), compare);
    for (size_t i = 0; i < o->n; i++) {
        struct weir__list_changes_entry *e = &o->entries[i];
        bool superseded = i + 1 < o->n && compare_place(e, e + 1) == 0;
        bool needless =
            written != NULL && !e->added && e->turn >= before && !is_written(written, e);
        if (superseded || needless)
            free(e->entry);
        else
            o->entries[kept++] = *e;
    }
    o->n = kept;
    for (size_t i = 0; i < kept; i++)
        o->entries[i].turn = i;
}

static int add_all(struct weir__list_changes *to, const struct weir_list_edit *edit,
                   struct weir_error *error)
{
    char *small = weir__attribute_small(edit->attribute);
    int code = small ? WEIR_OK : no_memory(error);

    for (size_t i = 0; code == WEIR_OK && i < edit->adds; i++)
        code = add_entry(to, edit->list, small, edit->add[i], true, error);
    for (size_t i = 0; code == WEIR_OK && i < edit->removes; i++)
        code = add_entry(to, edit->list, small, edit->remove[i], false, error);
    free(small);
    return code;
}

int weir__list_changes_edit(struct weir__list_changes **out, const struct weir__list_changes *from,
                            const struct weir__lists *written, const struct weir_list_edit *edit,
                            struct weir_error *error)
{
    if (edit->adds > WEIR__LIST_CHANGES_MAX || edit->removes > WEIR__LIST_CHANGES_MAX)
        return weir__fail(error, WEIR_INVALID,
                          "at most %d entries are changed by hand; put them into the rule file or "
                          "a file that it names",
                          WEIR__LIST_CHANGES_MAX);
    struct weir__list_changes *made = make_room(from, from->n + edit->adds + edit->removes);
    int code = made ? add_all(made, edit, error) : no_memory(error);

    if (code == WEIR_OK)
        settle(made, written, from->n);
    if (code == WEIR_OK && made->n > WEIR__LIST_CHANGES_MAX)
        code = weir__fail(error, WEIR_INVALID,
                          "that makes %zu entries changed by hand, and the most is %d; move them "
                          "into the rule file",
                          made->n, WEIR__LIST_CHANGES_MAX);
    if (code == WEIR_OK)
        *out = made;
    else
        weir__list_changes_destroy(made);
    return code;
}

/* --------------------------------------------------------------- apply ---- */

/* The entries of one list and attribute: they stand together. */
static size_t group_end(const struct weir__list_changes *o, size_t first)
{
    size_t end = first + 1;

    while (end < o->n && strcmp(o->entries[end].list, o->entries[first].list) == 0 &&
           strcmp(o->entries[end].attribute, o->entries[first].attribute) == 0)
        end++;
    return end;
}

static bool has_list(const struct weir__lists *written, const struct weir__list_changes_entry *e)
{
    return strcmp(e->list, "allow") == 0 || strcmp(e->list, "deny") == 0 ||
           weir__lists_find(written, e->list, e->attribute) >= 0;
}

/* `texts` has room for all: those added from the front, those removed from the back. */
static int apply_group(const struct weir__list_changes *group, const struct weir__lists *from,
                       const char **texts, struct weir__lists **out, struct weir_error *error)
{
    size_t adds = 0, removes = 0;

    for (size_t i = 0; i < group->n; i++) {
        if (group->entries[i].added)
            texts[adds++] = group->entries[i].entry;
        else
            texts[group->n - ++removes] = group->entries[i].entry;
    }
    return weir__lists_edit(out, from,
                            &(struct weir_list_edit){ group->entries->list,
                                                      group->entries->attribute, texts, adds,
                                                      texts + adds, removes },
                            error);
}

int weir__list_changes_apply(const struct weir__list_changes *o, const struct weir__lists *written,
                             struct weir__lists **out, size_t *skipped, struct weir_error *error)
{
    struct weir__lists *made = NULL;
    const char **texts = calloc(o->n + 1, sizeof(*texts));
    int code = texts ? WEIR_OK : no_memory(error);
    size_t left_out = 0;

    for (size_t first = 0, end; code == WEIR_OK && first < o->n; first = end) {
        struct weir__lists *next = NULL;
        end = group_end(o, first);
        if (!has_list(written, &o->entries[first])) {
            left_out += end - first;
            continue;
        }
        const struct weir__list_changes group = { o->entries + first, end - first };
        code = apply_group(&group, made ? made : written, texts, &next, error);
        weir__lists_destroy(made);
        made = next;
    }
    free(texts);
    if (code == WEIR_OK) {
        *out = made;
        *skipped = left_out;
    }
    return code;
}

/* --------------------------------------------------------------- print ---- */

static void print_escaped(struct weir__buffer *out, const char *text)
{
    for (; *text != '\0'; text++) {
        unsigned char c = (unsigned char)*text;
        if (c < ' ' || c == '%' || c == 0x7f)
            weir__buffer_format(out, "%%%02x", c);
        else
            weir__buffer_add(out, text, 1);
    }
}

static void print_checksum(char out[17], const char *text, size_t len)
{
    snprintf(out, 17, "%016" PRIx64, weir__digest(WEIR__DIGEST_START, text, len));
}

void weir__list_changes_print(const struct weir__list_changes *o, struct weir__buffer *out)
{
    struct weir__buffer body = { 0 };
    char checksum[17];

    for (size_t i = 0; i < o->n; i++) {
        const struct weir__list_changes_entry *e = &o->entries[i];
        weir__buffer_format(&body, "%s %s %s ", e->added ? "added" : "removed", e->list,
                            e->attribute);
        print_escaped(&body, e->entry);
        weir__buffer_text(&body, "\n");
    }
    print_checksum(checksum, body.bytes, body.len);
    weir__buffer_format(out, VERSION_LINE "\nchecksum %s\n", checksum);
    weir__buffer_add(out, body.bytes, body.len);
    out->failed = out->failed || body.failed;
    weir__buffer_free(&body);
}

void weir__list_changes_json(const struct weir__list_changes *o, struct weir__buffer *out)
{
    weir__buffer_open(out, NULL, '[');
    for (size_t i = 0; i < o->n; i++) {
        const struct weir__list_changes_entry *e = &o->entries[i];
        weir__buffer_open(out, NULL, '{');
        weir__buffer_member(out, "list", e->list);
        weir__buffer_member(out, "attribute", e->attribute);
        weir__buffer_member(out, "entry", e->entry);
        weir__buffer_member(out, "change", e->added ? "added" : "removed");
        weir__buffer_close(out, "}");
    }
    weir__buffer_close(out, "]");
}

/* --------------------------------------------------------------- parse ---- */

static int damaged(struct weir_error *error, const char *name, size_t line, const char *why)
{
    return weir__fail(
        error, WEIR_CORRUPT,
        "%s:%zu: %s; put a good copy back, or move it away and make the changes of lists again",
        name, line, why);
}

/* In place; false if print did not make it. */
static bool unescape(char *text)
{
    char *to = text;

    for (const char *from = text; *from != '\0'; from++) {
        unsigned value = (unsigned char)*from;
        if (value == '%') {
            int high = weir__hex(from[1]), low = high < 0 ? -1 : weir__hex(from[2]);
            if (low < 0 || high + low == 0)
                return false;
            value = (unsigned)(high << 4 | low);
            from += 2;
        }
        *to++ = (char)value;
    }
    *to = '\0';
    return true;
}

/* Ends the word at the next space; NULL if there is none. */
static char *cut_word(char **rest)
{
    char *word = *rest, *space = strchr(word, ' ');

    if (space == NULL || space == word)
        return NULL;
    *space = '\0';
    *rest = space + 1;
    return word;
}

static bool is_name(const char *text, size_t max)
{
    return strlen(text) <= max && weir__attribute_length(text) == strlen(text);
}

static int parse_line(struct weir__list_changes *o, char *line, size_t number, const char *name,
                      struct weir_error *error)
{
    struct weir_error why;
    char *rest = line, *change = cut_word(&rest), *list = change ? cut_word(&rest) : NULL,
         *attribute = list ? cut_word(&rest) : NULL;
    bool added = change && strcmp(change, "added") == 0,
         removed = change && strcmp(change, "removed") == 0;

    if (attribute == NULL || !(added || removed) || !is_name(list, 63) || !is_name(attribute, 63) ||
        !unescape(rest))
        return damaged(error, name, number, "expected: added|removed LIST ATTRIBUTE ENTRY");
    if (o->n == WEIR__LIST_CHANGES_MAX)
        return damaged(error, name, number,
                       "it has more than " WEIR__DIGITS(WEIR__LIST_CHANGES_MAX) " entries");
    char *small = weir__attribute_small(attribute); /* somebody may have written it by hand */
    int code = small ? add_entry(o, list, small, rest, added, &why) : WEIR_NO_MEMORY;
    free(small);
    return code == WEIR_INVALID ? damaged(error, name, number, why.text)
           : code == WEIR_OK    ? code
                                : no_memory(error);
}

/* Every line ends in a newline; `copy` is the text, with a NUL behind it. */
static int parse_lines(struct weir__list_changes *o, char *copy, const char *name,
                       struct weir_error *error)
{
    size_t number = 3;
    int code = WEIR_OK;

    for (char *line = copy, *end; code == WEIR_OK && *line != '\0'; line = end + 1, number++) {
        if ((end = strchr(line, '\n')) == NULL)
            return damaged(error, name, number, "the last line has no end");
        *end = '\0';
        code = parse_line(o, line, number, name, error);
    }
    return code;
}

static int check_head(const char *text, size_t len, const char *name, size_t *body,
                      struct weir_error *error)
{
    static const size_t version = sizeof(VERSION_LINE), whole = HEAD_SIZE;
    char right[17], why[96];

    if (len < version || memcmp(text, VERSION_LINE "\n", version) != 0)
        return damaged(error, name, 1, "expected '" VERSION_LINE "'");
    if (len < whole || memcmp(text + version, "checksum ", 9) != 0 || text[whole - 1] != '\n' ||
        memchr(text, '\0', len) != NULL)
        return damaged(error, name, 2, "expected 'checksum' and 16 digits, and text below them");
    print_checksum(right, text + whole, len - whole);
    snprintf(why, sizeof(why),
             "the checksum does not fit; if all below is as you want it, write %s", right);
    *body = whole;
    return memcmp(text + version + 9, right, 16) == 0 ? WEIR_OK : damaged(error, name, 2, why);
}

int weir__list_changes_parse(struct weir__list_changes **out, const char *text, size_t len,
                             const char *name, struct weir_error *error)
{
    static const struct weir__list_changes none;
    size_t body = 0, lines = 0;
    int code = check_head(text, len, name, &body, error);

    if (code != WEIR_OK)
        return code;
    for (size_t i = body; i < len; i++)
        lines += text[i] == '\n';
    char *copy = strndup(text + body, len - body);
    struct weir__list_changes *made =
        make_room(&none, lines < WEIR__LIST_CHANGES_MAX ? lines : WEIR__LIST_CHANGES_MAX);
    code = copy && made ? parse_lines(made, copy, name, error) : no_memory(error);
    free(copy);
    if (code == WEIR_OK) {
        settle(made, NULL, 0);
        *out = made;
    } else {
        weir__list_changes_destroy(made);
    }
    return code;
}

/* Only a regular file is opened: a pipe would keep the reader waiting. */
int weir__list_changes_read(struct weir__list_changes **out, const char *path,
                            struct weir_error *error)
{
    size_t len;
    struct stat st;

    if (stat(path, &st) == 0 && !S_ISREG(st.st_mode))
        return weir__fail(error, WEIR_SYSTEM, "cannot read '%s': it is not a regular file", path);
    char *text = weir__file_read(path, FILE_MAX, &len);
    if (text == NULL && errno == ENOENT) {
        struct weir__list_changes *empty = weir__list_changes_create();
        *out = empty ? empty : *out;
        return empty ? WEIR_OK : no_memory(error);
    }
    if (text == NULL)
        return weir__fail_errno(error, "cannot read", path);
    int code = weir__list_changes_parse(out, text, len, path, error);
    free(text);
    return code;
}

uint64_t weir__list_changes_stamp(const char *path)
{
    struct stat st;
    char head[HEAD_SIZE];
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    int failed = fd < 0 || fstat(fd, &st) != 0 ? errno : 0;
    ssize_t len = failed ? 0 : pread(fd, head, sizeof(head), 0);

    if (fd >= 0)
        close(fd);
    if (failed) /* the reason stands for the contents */
        return failed == ENOENT ? 0 : weir__digest(WEIR__DIGEST_START, &failed, sizeof(failed));
    int64_t known[] = { (int64_t)st.st_dev, (int64_t)st.st_ino, (int64_t)st.st_size,
                        (int64_t)st.st_mtim.tv_sec, (int64_t)st.st_mtim.tv_nsec };
    return weir__digest(weir__digest(WEIR__DIGEST_START, known, sizeof(known)), head,
                        len > 0 ? (size_t)len : 0);
}
