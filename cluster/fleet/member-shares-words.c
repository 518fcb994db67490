/* member-shares-words.c -- the words that member-shares.lua is called with, and its answers. */
#include <string.h>

#include "cluster/fleet/key-word.h"
#include "cluster/fleet/member-shares.h"
#include "wire/resp-reply.h"

static void add_word(struct weir__buffer *out, const char *text)
{
    weir__buffer_bulk(out, text, strlen(text));
}

void weir__member_words(const struct weir__member *m, const struct weir__member_send *send,
                        struct weir_key fleet, const char *id, struct weir__buffer *out)
{
    weir__buffer_bulk_number(out, 4);
    weir__key_word(out, "fleet", fleet, "");
    weir__key_word(out, "fleet", fleet, ":members");
    weir__key_word(out, "fleet", fleet, ":free");
    weir__key_word(out, "fleet", fleet, ":notes");
    add_word(out, send->verb == WEIR__MEMBER_LEAVES ? "leave" : "beat");
    add_word(out, id);
    weir__buffer_bulk_number(out, send->seq);
    weir__buffer_bulk_number(out, m->weight);
    weir__buffer_bulk_number(out, m->want);
    weir__buffer_bulk_number(out, send->part);
    weir__buffer_bulk_number(out, m->beat / WEIR_MICROSECOND);
}

bool weir__member_reply(struct weir__member_answer *out, struct weir__text reply,
                        struct weir__text *why)
{
    struct weir__resp_value list, n[5];
    const char *at = weir__resp_value(reply.bytes, &list);

    *why = list.kind == '-' && list.text.len > 0
               ? list.text
               : (struct weir__text){ "a reply that makes no sense", 27 };
    if (list.kind != '*' || list.n != 5)
        return false;
    for (int i = 0; i < 5; i++) {
        at = weir__resp_value(at, &n[i]);
        if (n[i].kind != ':')
            return false;
    }
    *out = (struct weir__member_answer){ .offer = n[0].integer,
                                         .members = n[1].integer,
                                         .granted = n[2].integer,
                                         .learning = n[3].integer == 1,
                                         .note = n[4].integer };
    return out->offer >= -1 && out->offer <= WEIR__PART_ONE;
}
