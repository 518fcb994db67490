/* auth.c -- the role that a secret gives.
 *
 * The time of a comparison must reveal nothing about the secret, not even its length.  So both
 * are put into buffers of one size, and every byte of these is compared; always both tokens.
 */
#include <string.h>

#include "base/base.h"
#include "server/serve/serve.h"
#include "server/base/token.h"
#include "server/serve/settings/wrong-tokens.h"

#define TOKEN_LEAST 16 /* bytes, where other hosts can try */

/* Copying takes time by length alone: the client knows that of its secret, and the token's is
 * always the same. */
static bool same(const char *token, const char *shown, size_t len)
{
    unsigned char a[WEIR__TOKEN_MAX] = { 0 }, b[WEIR__TOKEN_MAX] = { 0 };
    size_t token_len = strlen(token);
    unsigned differ = token_len != len || len == 0 || len > WEIR__TOKEN_MAX;

    memcpy(a, token, token_len < sizeof(a) ? token_len : sizeof(a));
    memcpy(b, shown, len < sizeof(b) ? len : sizeof(b));
    for (size_t i = 0; i < sizeof(a); i++)
        differ |= a[i] ^ b[i];
    explicit_bzero(a, sizeof(a));
    explicit_bzero(b, sizeof(b));
    return differ == 0;
}

enum weir__role weir__auth_role(const struct weir__settings *settings, const char *secret,
                                size_t len)
{
    bool admin = same(settings->admin_token, secret, len),
         check = same(settings->check_token, secret, len);

    return admin ? WEIR__ROLE_ADMIN : check ? WEIR__ROLE_CHECK : WEIR__ROLE_NONE;
}

bool weir__auth_has_tokens(const struct weir__settings *settings)
{
    return *settings->check_token || *settings->admin_token;
}

const char *weir__role_name(enum weir__role role)
{
    static const char *const names[] = { "none", "check", "admin" };

    return names[role];
}

weir_time weir__auth_judge(struct weir__conn *conn, enum weir__role role)
{
    struct weir__counters *counters = &conn->loop->counters;

    if (role != WEIR__ROLE_NONE && conn->known >= role)
        return 0;
    weir_time wait = weir__wrong_tokens_judge(conn->loop->server->wrong_tokens, conn->peer, role,
                                              weir__loop_now(conn->loop));
    if (wait > 0) {
        weir__counter_add(counters, WEIR__COUNT_AUTH_TURNED_AWAY, 1);
        weir__conn_end_early(conn);
    } else if (role == WEIR__ROLE_NONE) {
        weir__counter_add(counters, WEIR__COUNT_AUTH_FAILED, 1);
        if (++conn->wrong_tokens >= WEIR__WRONG_TOKENS_MAX)
            weir__conn_end_early(conn);
    } else {
        conn->known = role;
        conn->proven = true;
    }
    return wait;
}

static int fail_short(const char *name, const char *token, const char *address,
                      struct weir_error *error)
{
    return weir__fail(error, WEIR_INVALID,
                      "%s can be reached from other hosts, and %s has %zu bytes only: it needs %d, "
                      "so that it cannot be guessed",
                      address, name, strlen(token), TOKEN_LEAST);
}

int weir__auth_suffices(const struct weir__settings *settings, const char *address,
                        struct weir_error *error)
{
    const char *admin = settings->admin_token, *check = settings->check_token;

    if (!weir__auth_has_tokens(settings))
        return weir__fail(error, WEIR_INVALID,
                          "%s can be reached from other hosts, and there is no token: set "
                          "WEIR_ADMIN_TOKEN or admin-token-file (and "
                          "check-token, for clients that only ask), or listen on 127.0.0.1",
                          address);
    if (*admin && strlen(admin) < TOKEN_LEAST)
        return fail_short("admin-token", admin, address, error);
    if (*check && strlen(check) < TOKEN_LEAST)
        return fail_short("check-token", check, address, error);
    return WEIR_OK;
}
