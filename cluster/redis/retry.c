/* retry.c -- errors of Redis that say "elsewhere" or "not now": the ask is sent again.
 *
 *     MOVED, ASK       to the node that is named, the first times at once.  An ASK that does not
 *                      answer ASKING always: after a rest the slot's owner would say it again
 *     TRYAGAIN, ...    after a rest, which doubles each time; READONLY also on another connection
 *     NOSCRIPT         to the same node, with the whole script
 *     unknown command, NOPERM of the module   to the same node, by scripts
 *     NOPERM of a script    by the module, if the node may have it
 *
 * So is an ask that others outrun (account-asks.h), after a rest if that was often.
 */
#include <stdio.h>
#include <string.h>

#include "cluster/redis/client-private.h"

#define REST_BASE    (5 * WEIR_MILLISECOND)
#define REST_MAX     (320 * WEIR_MILLISECOND)
#define LOSS_BASE    WEIR_MILLISECOND
#define LOSS_MAX     (32 * WEIR_MILLISECOND)
#define QUICK_TURNS  3 /* redirections of one ask that are followed at once */
#define QUICK_LOSSES 3 /* of one ask, after which it tries again at once */

/* Errors that say: not carried out, but soon it may be. */
static const struct {
    const char *word;
    bool doubt; /* the map may be out of date */
    bool leave; /* so may the host's address: the name of a master, after a failover */
} passing[] = {
    { "TRYAGAIN", false, false },       { "CLUSTERDOWN", true, false }, { "LOADING", false, false },
    { "READONLY", true, true },         { "MASTERDOWN", true, false },  { "BUSY", false, false },
    { WEIR__REDIS_FULL, false, false },
};

/* Before Redis 7 a script ends with "ERR Error running script (...): ...: -READONLY You can't ...":
 * the error of the command in it. */
static struct weir__resp_value unwrap(const struct weir__resp_value *error)
{
    static const char words[] = "ERR Error running script", mark[] = ": -";
    struct weir__resp_value inner = *error;
    const char *at =
        error->text.len > sizeof(words) && memcmp(error->text.bytes, words, sizeof(words) - 1) == 0
            ? memmem(error->text.bytes, error->text.len, mark, sizeof(mark) - 1)
            : NULL;

    if (at) {
        inner.text.len -= (size_t)(at - error->text.bytes) + sizeof(mark) - 1;
        inner.text.bytes = at + sizeof(mark) - 1;
    }
    return inner;
}

static void rest_for(struct weir__redis_client *c, struct weir__redis_ask *ask, weir_time now,
                     weir_time span)
{
    weir_time until = now + span;

    c->counts.rested++;
    ask->own.where = WEIR__ASK_RESTING;
    weir__redis_dues_move(&c->dues, ask, until < ask->deadline ? until : ask->deadline);
}

static void rest(struct weir__redis_client *c, struct weir__redis_ask *ask, weir_time now)
{
    rest_for(c, ask, now, weir__redis_back_off(c, REST_BASE, REST_MAX, ask->own.tries++));
}

bool weir__redis_rest_after_losses(struct weir__redis_client *c, struct weir__redis_ask *ask,
                                   weir_time now)
{
    if (ask->losses <= QUICK_LOSSES)
        return false;
    snprintf(ask->own.why, sizeof(ask->own.why), "%s", WEIR__REDIS_OUTRUN);
    rest_for(c, ask, now,
             weir__redis_back_off(c, LOSS_BASE, LOSS_MAX, ask->losses - QUICK_LOSSES - 1));
    return true;
}

/* "MOVED 3999 127.0.0.1:6381": the slot and the node; false: it is not of that form. */
static bool read_redirection(const struct weir__resp_value *error,
                             const struct weir__redis_conn *conn, int *slot,
                             struct weir__redis_address *address)
{
    const char *at = error->text.bytes, *end = at + error->text.len;
    const char *first = memchr(at, ' ', error->text.len);
    const char *second = first ? memchr(first + 1, ' ', (size_t)(end - first) - 1) : NULL;
    int64_t n = 0;

    if (!second || !weir__count_parse(first + 1, (size_t)(second - first) - 1, &n) ||
        n >= WEIR__REDIS_SLOTS)
        return false;
    *slot = (int)n;
    return weir__redis_address_read(address, second + 1, (size_t)(end - second) - 1,
                                    weir__redis_conn_address(conn)->host);
}

/* False: there is no way to follow. */
static bool redirect(struct weir__redis_client *c, struct weir__redis_conn *conn,
                     struct weir__redis_ask *ask, const struct weir__resp_value *error,
                     weir_time now)
{
    struct weir__redis_address address;
    int slot;
    bool moved = weir__resp_is_error(error, "MOVED");

    if (!read_redirection(error, conn, &slot, &address))
        return false;
    struct weir__redis_node *node = weir__redis_node(c, &address, false);
    if (!node)
        return false;
    c->counts.redirected++;
    if (moved) {
        weir__redis_map_moved(c, slot, node);
        weir__redis_map_doubt(c, now);
    }
    if (ask->own.tries >= QUICK_TURNS && (moved || ask->own.asking)) {
        rest(c, ask, now);
        return true;
    }
    ask->own.tries++;
    ask->own.asking = !moved;
    ask->own.whole_script = false;
    weir__redis_node_send(c, node, ask, now);
    return true;
}

bool weir__redis_retry(struct weir__redis_client *c, struct weir__redis_conn *conn,
                       struct weir__redis_ask *ask, const struct weir__resp_value *error,
                       weir_time now)
{
    if (weir__redis_module_refused(conn->node, ask, error)) {
        weir__redis_node_send(c, conn->node, ask, now); /* and ASKING again */
        return true;
    }
    if (weir__redis_module_may_help(conn->node, ask, error)) {
        rest(c, ask, now); /* until the node has said whether it has the module */
        return true;
    }
    if (weir__resp_is_error(error, "NOSCRIPT") && ask->script && !ask->own.whole_script) {
        ask->own.whole_script = true; /* and ASKING again, which holds for one command */
        c->counts.scripts_sent++;
        weir__redis_node_send(c, conn->node, ask, now);
        return true;
    }
    if (ask->only)
        return false;
    struct weir__resp_value inner = unwrap(error);
    if (weir__resp_is_error(error, "MOVED") || weir__resp_is_error(error, "ASK"))
        return redirect(c, conn, ask, error, now);
    for (size_t i = 0; i < sizeof(passing) / sizeof(passing[0]); i++) {
        if (weir__resp_is_error(&inner, passing[i].word)) {
            if (passing[i].doubt)
                weir__redis_map_doubt(c, now);
            if (passing[i].leave)
                weir__redis_node_leave(c, conn, now);
            rest(c, ask, now);
            return true;
        }
    }
    return false;
}
