/* session.h -- shared by the fuzzers of whole sessions: a server without sockets, and bytes that
 * come in pieces as a network may cut them.
 *
 * The first byte of the input says how: its lower half is how the rest is cut (0: not at all, 1:
 * byte by byte), its upper half the role.
 */
#ifndef WEIR_TESTS_FUZZ_SESSION_H
#define WEIR_TESTS_FUZZ_SESSION_H

#include "fuzz/fuzz.h"

#include <strings.h>

#include "unit/world.h"
#include "wire/json.h"

enum { INPUT_MAX = 12 * 1024, REQUEST_MAX = 4096, KEYS = 256 };

#define CHECK_TOKEN "check-token"
#define ADMIN_TOKEN "admin-token"

static bool go_on(void *context, const struct weir__json_value *value)
{
    (void)context;
    (void)value;
    return true;
}

static void check_json(const char *bytes, size_t len)
{
    const char *what;

    check(weir__json_walk(bytes, len, NULL, go_on, NULL, &what) == -1);
}

static struct world *begin_session(const struct weir__protocol *protocol, unsigned how)
{
    struct world *w = make_world_of(protocol, KEYS);

    w->settings.request_max = REQUEST_MAX;
    if (how & 0x30) { /* a stranger, or one that may only ask */
        w->settings.check_token = CHECK_TOKEN;
        w->settings.admin_token = ADMIN_TOKEN;
        w->conn.role = w->conn.first_role = how & 0x10 ? WEIR__ROLE_NONE : WEIR__ROLE_CHECK;
    }
    if (how & 0x40) /* through a unix socket */
        w->conn.peer[0] = '\0';
    return w;
}

/* Whether something may have been reserved. */
static bool has_reserve(const char *bytes, size_t len)
{
    static const char word[] = "reserve";
    const size_t n = sizeof(word) - 1;

    for (size_t i = 0; i + n <= len; i++) {
        if (strncasecmp(bytes + i, word, n) == 0)
            return true;
    }
    return false;
}

static void end_session(struct world *w, const char *bytes, size_t len)
{
    if (!has_reserve(bytes, len)) {
        world_spare = w->server.reservations;
        w->server.reservations = NULL;
    }
    end_world(w);
}

static size_t next_piece(uint32_t *dice, unsigned how, size_t left)
{
    *dice = *dice * 1664525 + 1013904223;
    size_t piece = how == 0 ? left : how == 1 ? 1 : (*dice >> 16) % (how * how) + 1;
    return piece < left ? piece : left;
}

/* What is told without being asked comes behind `told`. */
static void wake(struct world *w, struct weir__buffer *told)
{
    if (!w->conn.subscribed || w->conn.ending)
        return;
    w->conn.protocol->wake(&w->conn);
    weir__buffer_add(told, w->sent.bytes, w->sent.len);
    w->sent.len = 0;
}

/* Feeds it all; unused bytes come again with more behind them.  Returns how many were used. */
static size_t feed_session(struct world *w, const char *bytes, size_t len, unsigned how,
                           struct weir__buffer *told)
{
    uint32_t dice = how;
    char *kept = NULL;
    size_t n_kept = 0, used = 0;

    for (size_t at = 0, piece; at < len && !w->conn.ending; at += piece) {
        piece = next_piece(&dice, how % 16, len - at);
        kept = realloc(kept, n_kept + piece);
        check(kept != NULL);
        memcpy(kept + n_kept, bytes + at, piece);
        n_kept += piece;
        size_t n = feed_bytes(w, kept, n_kept);
        if (n > 0) {
            char *rest = copy_of(kept + n, n_kept - n);
            free(kept);
            kept = rest;
            n_kept -= n;
            used += n;
        }
        wake(w, told);
    }
    free(kept);
    return used;
}

#endif
