/* account.c -- keys of Redis as accounts.
 *
 * A decision changes the string in place and sets its expiry (and replicate.c tells Redis).  One
 * that changes nothing writes nothing.
 *
 * Expiry is at the moment the state equals a fresh one, rounded up to the next millisecond: rounded
 * down, a limit of many units per millisecond would forget what was used.
 */
#include "redis-module/account.h"

#include <string.h>

#include "redis-module/redis-cell-keys.h"
#include "redis-module/replicate.h"

#define LIFE_MAX  ((weir_time)100 * 365 * 86400 * WEIR_SECOND)
#define STACK_MAX 512

weir_time module_test_clock = -1;

weir_time module_now(void)
{
    weir_time now = weir__clock_real();

    return module_test_clock >= 0 ? module_test_clock : now - now % WEIR_MICROSECOND;
}

/* ---------------------------------------------------------------- read ---- */

static bool read_state(struct account *a, const struct opening *how)
{
    enum weir__account_found found = weir__account_open(&a->limit->plan, &a->limit->head, a->state,
                                                        a->stored, a->stored_len, how->now);

    a->known = found != WEIR__ACCOUNT_NEW;
    a->moved = found == WEIR__ACCOUNT_MOVED;
    if (how->keeping == KEEP_DEBT && a->moved)
        return cell_keeps_debt(a, how->now);
    return found != WEIR__ACCOUNT_FOREIGN || (how->keeping == KEEP_DEBT && cell_read(a, how->now));
}

enum opened account_open(struct account *a, const struct opening *how)
{
    size_t size = how->limit->plan.state_size;

    a->context = how->context;
    a->name = how->name;
    a->limit = how->limit;
    a->stored = NULL;
    a->stored_len = 0;
    a->known = a->moved = false;
    a->state = size > sizeof(a->small) ? redis.Alloc(size) : a->small;
    a->key = redis.OpenKey(how->context, how->name, how->mode);
    int type = redis.KeyType(a->key);
    if (type == REDIS_KEY_EMPTY) {
        memset(a->state, 0, size);
        return ACCOUNT_OPEN;
    }
    if (type == REDIS_KEY_STRING)
        a->stored = (unsigned char *)redis.StringDMA(a->key, &a->stored_len, how->mode);
    if (a->stored_len > 0 && read_state(a, how)) /* an empty string is none of ours */
        return ACCOUNT_OPEN;
    account_close(a);
    return ACCOUNT_FOREIGN;
}

void account_close(struct account *a)
{
    redis.CloseKey(a->key);
    if (a->state != a->small)
        redis.Free(a->state);
}

/* --------------------------------------------------------------- write ---- */

/* When the key may go, in ms by Redis's clock.  A test's clock is another: then the key stays a
 * while. */
static long long expiry_of(const struct account *a, weir_time now)
{
    weir_time idle = weir__account_idle_at(&a->limit->plan, a->state);
    weir_time life = idle <= now ? 0 : idle - now > LIFE_MAX ? LIFE_MAX : idle - now;

    if (module_test_clock >= 0)
        return redis.Milliseconds() + life / WEIR_MILLISECOND + 3600 * 1000;
    return (now + life) / WEIR_MILLISECOND + 1;
}

static void write_bytes(struct account *a, const unsigned char *bytes, size_t len, weir_time now)
{
    unsigned char *to = a->stored;
    size_t room;

    if (len != a->stored_len) {
        redis.StringTruncate(a->key, len);
        to = (unsigned char *)redis.StringDMA(a->key, &room, REDIS_WRITE);
    }
    memcpy(to, bytes, len);
    tell_written(a->context, a->key, a->name, bytes, len, expiry_of(a, now));
}

static bool is_fresh(const struct account *a)
{
    const unsigned char *bytes = a->state;
    size_t size = a->limit->plan.state_size;

    return bytes[0] == 0 && memcmp(bytes, bytes + 1, size - 1) == 0;
}

bool account_was_cut(const struct account *a)
{
    return a->moved && weir__account_was_cut(&a->limit->plan, a->state, a->stored, a->stored_len);
}

void account_store(struct account *a, weir_time now)
{
    const struct limit *limit = a->limit;
    unsigned char local[STACK_MAX];
    unsigned char *bytes = limit->head.most > sizeof(local) ? redis.Alloc(limit->head.most) : local;
    size_t len = limit->head.len;

    memcpy(bytes, limit->head.bytes, len);
    len += weir__account_write(&limit->plan, a->state, bytes + len);
    if ((!a->known && is_fresh(a)) || account_was_cut(a) ||
        weir__account_is_same(&limit->plan, &limit->head, bytes, len, a->stored, a->stored_len))
        len = 0;
    if (len > 0)
        write_bytes(a, bytes, len, now);
    if (bytes != local)
        redis.Free(bytes);
}
