/* auth.c -- the role that a secret gives.
 *
 * The time of a comparison must reveal nothing about the secret, not even its length. So both are
 * put into buffers of one size, and every byte of these is compared; both tokens are, whatever the
 * first one says.
 */
#include <string.h>

#include "server/serve/serve.h"
#include "server/base/token.h"

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
