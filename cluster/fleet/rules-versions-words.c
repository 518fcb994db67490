/* rules-versions-words.c -- the words that rules-versions.lua is called with, and its answers. */
#include "cluster/fleet/rules-versions-words.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "cluster/redis/sha1.h"
#include "wire/decimal.h"
#include "wire/resp-reply.h"

/* ------------------------------------------------------------------ words ---- */

bool weir__fleet_is_name(const char *text)
{
    size_t len = strlen(text);

    return len > 0 && len <= 64 &&
           strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                        "0123456789._-") == len;
}

static void write_key(struct weir__buffer *key, struct weir_key fleet, const char *part,
                      struct weir_key document)
{
    weir__buffer_text(key, "weir:{fleet:");
    weir__buffer_add(key, fleet.bytes, fleet.len);
    weir__buffer_text(key, "}:");
    weir__buffer_text(key, part);
    weir__buffer_add(key, document.bytes, document.len);
}

void weir__versions_key(struct weir_key fleet, struct weir_key document, struct weir__buffer *out)
{
    write_key(out, fleet, "document:", document);
}

size_t weir__versions_words(struct weir_key fleet, struct weir_key document,
                            const struct weir__text *arguments, size_t n, struct weir__buffer *out)
{
    static const char *const parts[] = { "document:", "reports:", "news:", "members", "free" };
    static const struct weir_key whole = { "", 0 };
    struct weir__buffer key = { 0 };

    weir__buffer_bulk(out, "5", 1);
    for (size_t i = 0; i < 5; i++) {
        key.len = 0;
        write_key(&key, fleet, parts[i], i < 3 ? document : whole);
        out->failed = out->failed || key.failed;
        if (!key.failed)
            weir__buffer_bulk(out, key.bytes, key.len);
    }
    weir__buffer_free(&key);
    for (size_t i = 0; i < n; i++)
        weir__buffer_bulk(out, arguments[i].bytes, arguments[i].len);
    return 6 + n;
}

void weir__versions_ask(struct weir_key fleet, struct weir_key document,
                        const struct weir__text *words, size_t n, struct weir__redis_script *script,
                        struct weir__redis_ask *out)
{
    struct weir__buffer key = { 0 };

    *script = weir__redis_script(weir__lua_rules_versions, weir__lua_rules_versions_len);
    *out = (struct weir__redis_ask){ .script = script, .repeatable = true };
    weir__versions_key(fleet, document, &key);
    out->slot = key.failed ? WEIR__REDIS_ANY_SLOT : weir__redis_slot(key.bytes, key.len);
    weir__buffer_free(&key);
    out->n_words = weir__versions_words(fleet, document, words, n, &out->words);
}

/* ---------------------------------------------------------------- answers ---- */

bool weir__versions_list(struct weir__versions_list *out, const char *reply, struct weir__text *why)
{
    struct weir__resp_value head;

    out->at = weir__resp_value(reply, &head);
    out->left = head.kind == '*' ? head.n : 0;
    *why = head.kind == '-' ? head.text : WEIR__VERSIONS_TEXT("a reply that makes no sense");
    return head.kind == '*';
}

static struct weir__resp_value next(struct weir__versions_list *list)
{
    struct weir__resp_value v = { 0 };

    if (list->left > 0) {
        list->left--;
        list->at = weir__resp_value(list->at, &v);
    }
    return v;
}

int64_t weir__versions_number(struct weir__versions_list *list)
{
    struct weir__resp_value v = next(list);

    return v.kind == ':' ? v.integer : 0;
}

struct weir__text weir__versions_text(struct weir__versions_list *list)
{
    struct weir__resp_value v = next(list);

    return v.kind == '$' ? v.text : (struct weir__text){ "", 0 };
}

void weir__versions_untried(struct weir__versions_list *list, char warning[WEIR__RULES_WARNING])
{
    int64_t version = weir__versions_number(list);
    struct weir__text stage = weir__versions_text(list);

    warning[0] = '\0';
    if (stage.len > 0)
        snprintf(warning, WEIR__RULES_WARNING,
                 "its stage %.*s has not told that it runs version %" PRId64
                 ": no node may have tried it",
                 (int)stage.len, stage.bytes, version);
}

bool weir__version(struct weir__versions_list *list, struct weir__version *out)
{
    struct weir__resp_value v[7];

    *out = (struct weir__version){ .number = 0 };
    if (list->left == 0)
        return true;
    if (list->left != 7)
        return false;
    for (size_t i = 0; i < 7; i++) {
        v[i] = next(list);
        if (v[i].kind != (i < 3 ? ':' : '$'))
            return false;
    }
    *out = (struct weir__version){ .number = v[0].integer,
                                   .time_us = v[1].integer,
                                   .origin = v[2].integer,
                                   .author = v[3].text,
                                   .note = v[4].text,
                                   .bytes = (int64_t)v[5].text.len,
                                   .text = v[5].text };
    return weir__count_parse(v[6].text.bytes, v[6].text.len, &out->edit);
}

bool weir__versions_next(struct weir__versions_list *list, struct weir__version *out)
{
    if (list->left < 6)
        return false;
    *out = (struct weir__version){ .number = weir__versions_number(list) };
    out->time_us = weir__versions_number(list);
    out->origin = weir__versions_number(list);
    out->author = weir__versions_text(list);
    out->note = weir__versions_text(list);
    out->bytes = weir__versions_number(list);
    return true;
}

/* ---------------------------------------------------------------- changes ---- */

/* Without control characters, since one separates the fields in Redis; cut between characters of
 * UTF-8. */
static struct weir__text clean(char *out, size_t size, const char *text)
{
    size_t len = strlen(text);

    if (len >= size)
        for (len = size - 1; len > 0 && ((unsigned char)text[len] & 0xc0) == 0x80;)
            len--;
    for (size_t i = 0; i < len; i++)
        out[i] = (unsigned char)text[i] < ' ' || text[i] == 127 ? ' ' : text[i];
    out[len] = '\0';
    return (struct weir__text){ out, len };
}

static struct weir__text number(char out[24], int64_t n)
{
    int len = snprintf(out, 24, "%" PRId64, n);

    return (struct weir__text){ out, (size_t)len };
}

/* Of all that it changes, not of its id alone: an id that was used for another change before would
 * make this one a repeat, which is answered, and not there. */
static bool find_edit(const struct weir__versions_edit *e, uint64_t *out)
{
    char id[WEIR__SHA1_HEX + 1], sha[WEIR__SHA1_HEX + 1], all[256];

    if (e->id == NULL || *e->id == '\0')
        return weir__random_fill(out, sizeof(*out)) == 0;
    weir__sha1_hex(id, e->id, strlen(e->id));
    weir__sha1_hex(sha, e->text.bytes, e->text.len);
    int len = snprintf(all, sizeof(all), "%s %s %" PRId64 " %.64s", id, sha, e->base,
                       e->stage ? e->stage : "");
    weir__sha1_hex(sha, all, (size_t)len);
    sha[16] = '\0';
    *out = strtoull(sha, NULL, 16);
    return true;
}

bool weir__versions_put(struct weir__versions_put *out, const struct weir__versions_edit *e)
{
    uint64_t random;

    if (!find_edit(e, &random))
        return false;
    out->words[0] = WEIR__VERSIONS_TEXT("put");
    out->words[1] = number(out->base, e->base);
    out->words[2] = number(out->edit, (int64_t)(random >> 1));
    out->words[3] = clean(out->author, sizeof(out->author), e->author);
    out->words[4] = clean(out->note, sizeof(out->note), e->note ? e->note : "");
    out->words[5] = WEIR__VERSIONS_TEXT(e->stage ? e->stage : "");
    out->words[6] = number(out->origin, e->origin);
    out->words[7] = e->text;
    out->words[8] =
        e->base_edit >= 0 ? number(out->base_edit, e->base_edit) : (struct weir__text){ "", 0 };
    return true;
}
