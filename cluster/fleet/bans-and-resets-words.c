/* bans-and-resets-words.c -- the words that bans-and-resets.lua is called with, and its answers. */
#include <string.h>

#include "cluster/fleet/key-word.h"
#include "cluster/fleet/bans-and-resets.h"

#define HEAD 4 /* values before the notes */

void weir__notes_words(struct weir_key fleet, int64_t begun, int64_t heard, int64_t knew,
                       struct weir__buffer *out)
{
    weir__buffer_bulk_number(out, 3);
    weir__key_word(out, "fleet", fleet, ":notes");
    weir__key_word(out, "fleet", fleet, ":notes:order");
    weir__key_word(out, "fleet", fleet, ":notes:ends");
    weir__buffer_bulk_number(out, begun);
    weir__buffer_bulk_number(out, heard);
    weir__buffer_bulk_number(out, knew);
    weir__buffer_bulk_number(out, WEIR__NOTES_AT_ONCE);
}

static void add_span(struct weir__buffer *out, weir_time span)
{
    span = span < WEIR__NOTE_SPAN_MAX ? span : WEIR__NOTE_SPAN_MAX;
    weir__buffer_bulk_number(out, (span > 0 ? span : 0) / WEIR_MICROSECOND);
}

void weir__note_words(const struct weir__note *note, struct weir__buffer *out)
{
    static const char *const how[] = { "new", "old", "now" };

    weir__buffer_format(out, "$%zu\r\n%c", 2 + note->rule.len + note->key.len, note->kind);
    weir__buffer_add(out, note->rule.bytes, note->rule.len);
    weir__buffer_add(out, "", 1);
    weir__buffer_add(out, note->key.bytes, note->key.len);
    weir__buffer_text(out, "\r\n");
    add_span(out, note->span);
    weir__buffer_bulk_number(out, note->strikes);
    add_span(out, note->forget);
    weir__buffer_bulk(out, how[note->how], 3);
}

bool weir__notes_reply(struct weir__notes *out, struct weir__text reply)
{
    struct weir__resp_value list, v[HEAD];

    out->at = weir__resp_value(reply.bytes, &list);
    if (list.kind != '*' || list.n < HEAD || (list.n - HEAD) % WEIR__NOTE_VALUES != 0)
        return false;
    for (size_t i = 0; i < HEAD; i++) {
        out->at = weir__resp_value(out->at, &v[i]);
        if (v[i].kind != ':' || v[i].integer < 0)
            return false;
    }
    out->begun = v[0].integer;
    out->last = v[1].integer;
    out->heard = v[2].integer;
    out->lost = v[3].integer != 0;
    out->n = (list.n - HEAD) / WEIR__NOTE_VALUES;
    return true;
}

static bool read_span(const struct weir__resp_value *v, weir_time *out)
{
    *out = weir__reply_time(v->integer);
    return v->integer >= 0 && *out <= WEIR__NOTE_SPAN_MAX;
}

bool weir__note_next(struct weir__notes *notes, struct weir__note *out)
{
    struct weir__resp_value v[WEIR__NOTE_VALUES];

    for (size_t i = 0; i < WEIR__NOTE_VALUES; i++) {
        notes->at = weir__resp_value(notes->at, &v[i]);
        if (v[i].kind != (i == 0 ? '$' : ':'))
            return false;
    }
    const char *name = v[0].text.bytes;
    const char *end = v[0].text.len > 0 ? memchr(name, '\0', v[0].text.len) : NULL;
    if (end == NULL || end == name)
        return false;
    *out = (struct weir__note){ .kind = name[0],
                                .rule = { name + 1, (size_t)(end - name) - 1 },
                                .key = { end + 1, v[0].text.len - (size_t)(end - name) - 1 },
                                .number = v[1].integer,
                                .base = v[5].integer,
                                .strikes = v[3].integer };
    return v[3].integer >= 0 && read_span(&v[2], &out->span) && read_span(&v[4], &out->forget);
}
