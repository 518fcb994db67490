/* member-shares-words.c -- the words that member-shares.lua is called with, and its answers. */
#include <stdio.h>
#include <string.h>

#include "cluster/fleet/member-shares.h"
#include "wire/resp-reply.h"

static void add_word(struct weir__buffer *out, const char *text)
{
    weir__buffer_format(out, "$%zu\r\n%s\r\n", strlen(text), text);
}

static void add_number(struct weir__buffer *out, int64_t n)
{
    char digits[24];

    snprintf(digits, sizeof(digits), "%lld", (long long)n);
    add_word(out, digits);
}

/* weir:{fleet:NAME}, and what belongs to it. */
static void add_key(struct weir__buffer *out, struct weir_key fleet, const char *part)
{
    static const char head[] = "weir:{fleet:";

    weir__buffer_format(out, "$%zu\r\n%s", sizeof(head) - 1 + fleet.len + 1 + strlen(part), head);
    weir__buffer_add(out, fleet.bytes, fleet.len);
    weir__buffer_format(out, "}%s\r\n", part);
}

void weir__member_words(const struct weir__member *m, const struct weir__member_send *send,
                        struct weir_key fleet, const char *id, struct weir__buffer *out)
{
    add_number(out, 4);
    add_key(out, fleet, "");
    add_key(out, fleet, ":members");
    add_key(out, fleet, ":free");
    add_key(out, fleet, ":notes");
    add_word(out, send->verb == WEIR__MEMBER_LEAVES ? "leave" : "beat");
    add_word(out, id);
    add_number(out, send->seq);
    add_number(out, m->weight);
    add_number(out, m->want);
    add_number(out, send->part);
    add_number(out, m->beat / WEIR_MICROSECOND);
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
