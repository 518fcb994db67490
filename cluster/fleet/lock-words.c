/* lock-words.c -- the words that lock.lua is called with, and its answers. */
#include <string.h>

#include "cluster/fleet/key-word.h"
#include "cluster/fleet/lock.h"
#include "wire/resp-reply.h"

void weir__lock_words(const struct weir__lock_ask *ask, struct weir__buffer *out)
{
    static const char *const verbs[] = { "look", "take", "wait", "keep",
                                         "free", "drop", "look", "quit" };
    const char *verb = verbs[ask->verb];

    weir__buffer_bulk_number(out, 3);
    weir__key_word(out, "lock", ask->name, "");
    weir__key_word(out, "lock", ask->name, ":line");
    weir__key_word(out, "lock", ask->name, ":heard");
    weir__buffer_bulk(out, verb, strlen(verb));
    weir__buffer_bulk(out, ask->id, strlen(ask->id));
    weir__buffer_bulk_number(out, ask->life / WEIR_MICROSECOND);
    weir__buffer_bulk_number(out, ask->token);
    weir__buffer_bulk(out, ask->ask.len ? ask->ask.bytes : "", ask->ask.len);
}

bool weir__lock_reply(struct weir__lock_reply *out, struct weir__text reply, struct weir__text *why)
{
    struct weir__resp_value list, numbers[5], holder;
    const char *at = weir__resp_value(reply.bytes, &list);

    *why = list.kind == '-' ? list.text : (struct weir__text){ "a reply that makes no sense", 27 };
    if (list.kind != '*' || list.n != 6)
        return false;
    for (int i = 0; i < 5; i++) {
        at = weir__resp_value(at, &numbers[i]);
        if (numbers[i].kind != ':' || numbers[i].integer < 0)
            return false;
    }
    weir__resp_value(at, &holder);
    if (holder.kind != '$' || numbers[2].integer > WEIR__LOCK_LIFE_MAX / WEIR_MICROSECOND)
        return false;
    *out = (struct weir__lock_reply){ .held = numbers[0].integer == 1,
                                      .token = numbers[1].integer,
                                      .left = numbers[2].integer * WEIR_MICROSECOND,
                                      .place = numbers[3].integer,
                                      .waiters = numbers[4].integer,
                                      .holder = holder.text };
    return true;
}
