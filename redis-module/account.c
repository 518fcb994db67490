/* account.c -- keys of Redis as accounts.
 *
 * A decision changes the string in place and sets its expiry; replicas and the append-only file get
 * the resulting state, SET key value PXAT time, never the command, which would decide again by
 * another clock.  A decision that changes nothing writes nothing.
 *
 * Expiry is at the moment the state equals a fresh one, rounded up to the next millisecond: rounded
 * down, a limit of many units per millisecond would forget what was used.
 */
#include "redis-module/account.h"

#include <string.h>

#include "algo/debt.h"

#define LIFE_MAX  ((weir_time)100 * 365 * 86400 * WEIR_SECOND)
#define STACK_MAX 512

weir_time module_test_clock = -1;

static struct redis_string *pxat; /* made once: a word of each write that is replicated */

void accounts_begin(void)
{
    pxat = redis.CreateString(NULL, "PXAT", 4);
}

void accounts_end(void)
{
    redis.FreeString(NULL, pxat);
}

weir_time module_now(void)
{
    weir_time now = weir__clock_real();

    return module_test_clock >= 0 ? module_test_clock : now - now % WEIR_MICROSECOND;
}

/* ---------------------------------------------------------------- read ---- */

/* A debt keeps its time; a part of another size is rounded up. */
static bool keep_debt(struct account *a)
{
    const struct weir_plan *plan = &a->limit->plan;
    struct weir_limit limit;
    struct weir_plan old;
    struct weir__debt *s = a->state;
    size_t head = weir__account_limit(&limit, a->stored, a->stored_len);

    if (head == 0 || weir__plan_make(&old, &limit, NULL) != WEIR_OK || old.algo != plan->algo ||
        !weir__account_read(&old, s, a->stored + head, a->stored_len - head))
        return false;
    s->owed = weir__scale_up(s->owed, (int64_t)plan->by_scale.by, (int64_t)old.by_scale.by);
    return true;
}

bool read_digits(const void *bytes, size_t len, int64_t *out)
{
    const unsigned char *b = bytes;

    *out = 0;
    for (size_t i = 0; i < len; i++) {
        unsigned digit = b[i] - (unsigned)'0';
        if (digit > 9 || __builtin_mul_overflow(*out, 10, out) ||
            __builtin_add_overflow(*out, digit, out))
            return false;
    }
    return len > 0;
}

/* redis-cell keeps one number in digits: the time, in ns, at which the debt is paid. */
static bool read_cell(struct account *a, weir_time now)
{
    const struct weir_plan *plan = &a->limit->plan;
    struct weir__debt *s = a->state;
    int64_t paid_off, owed;

    if (a->stored_len > 19 || !read_digits(a->stored, a->stored_len, &paid_off))
        return false;
    owed = paid_off > now ? paid_off - now : 0;
    if (__builtin_mul_overflow(owed, (int64_t)plan->by_scale.by, &owed) || owed > plan->capacity)
        owed = plan->capacity;
    *s = (struct weir__debt){ now, owed };
    a->known = a->moved = true;
    return true;
}

static bool read_state(struct account *a, const struct opening *how)
{
    enum weir__account_found found = weir__account_open(&a->limit->plan, &a->limit->head, a->state,
                                                        a->stored, a->stored_len, how->now);

    a->known = found != WEIR__ACCOUNT_NEW;
    a->moved = found == WEIR__ACCOUNT_MOVED;
    if (how->keeping == KEEP_DEBT && a->moved)
        return keep_debt(a);
    return found != WEIR__ACCOUNT_FOREIGN || (how->keeping == KEEP_DEBT && read_cell(a, how->now));
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
    weir_time idle = weir_step_idle_at(&a->limit->plan, a->state);
    weir_time life = idle <= now ? 0 : idle - now > LIFE_MAX ? LIFE_MAX : idle - now;

    if (module_test_clock >= 0)
        return redis.Milliseconds() + life / WEIR_MILLISECOND + 3600 * 1000;
    return (now + life) / WEIR_MILLISECOND + 1;
}

/* As digits, which end at `end`.  Redis would make three things of a number. */
static char *put_digits(char *end, uint64_t n)
{
    do
        *--end = (char)('0' + n % 10);
    while ((n /= 10) > 0);
    return end;
}

static void write_bytes(struct account *a, const unsigned char *bytes, size_t len, weir_time now)
{
    long long expiry = expiry_of(a, now);
    char text[20], *end = text + sizeof(text), *digits = put_digits(end, (uint64_t)expiry);
    unsigned char *to = a->stored;
    size_t room;

    if (len != a->stored_len) {
        redis.StringTruncate(a->key, len);
        to = (unsigned char *)redis.StringDMA(a->key, &room, REDIS_WRITE);
    }
    memcpy(to, bytes, len);
    if (redis.SetAbsExpire)
        redis.SetAbsExpire(a->key, expiry);
    else
        redis.SetExpire(a->key, expiry - redis.Milliseconds());
    redis.Replicate(a->context, "SET", "sbsb", a->name, (const char *)bytes, len, pxat, digits,
                    (size_t)(end - digits));
}

static bool is_fresh(const struct account *a)
{
    const unsigned char *bytes = a->state;
    size_t size = a->limit->plan.state_size;

    return bytes[0] == 0 && memcmp(bytes, bytes + 1, size - 1) == 0;
}

void account_store(struct account *a, weir_time now)
{
    const struct limit *limit = a->limit;
    unsigned char local[STACK_MAX];
    size_t most = limit->head.len + weir__account_state_max(&limit->plan);
    unsigned char *bytes = most > sizeof(local) ? redis.Alloc(most) : local;
    size_t len = limit->head.len;

    memcpy(bytes, limit->head.bytes, len);
    len += weir__account_write(&limit->plan, a->state, bytes + len);
    if ((!a->known && is_fresh(a)) ||
        weir__account_is_same(&limit->plan, &limit->head, bytes, len, a->stored, a->stored_len))
        len = 0;
    if (len > 0)
        write_bytes(a, bytes, len, now);
    if (bytes != local)
        redis.Free(bytes);
}
