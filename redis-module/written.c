/* written.c -- what Redis is told of a key that the module has written.
 *
 * Clients that watch the key or cache it hear of it.  Replicas and the append-only file get the
 * resulting state, SET key value PXAT time, never the command, which would decide again by another
 * clock.
 */
#include "redis-module/written.h"

static struct redis_string *pxat; /* made once: a word of each write that is replicated */

void written_begin(void)
{
    pxat = redis.CreateString(NULL, "PXAT", 4);
}

void written_end(void)
{
    redis.FreeString(NULL, pxat);
}

/* As digits, which end at `end`.  Redis would make three things of a number. */
static char *put_digits(char *end, uint64_t n)
{
    do
        *--end = (char)('0' + n % 10);
    while ((n /= 10) > 0);
    return end;
}

void written_string(struct redis_context *context, struct redis_string *name,
                    const unsigned char *bytes, size_t len, long long expiry)
{
    char text[20], *end = text + sizeof(text), *digits = put_digits(end, (uint64_t)expiry);

    redis.SignalModifiedKey(context, name);
    redis.Replicate(context, "SET", "sbsb", name, (const char *)bytes, len, pxat, digits,
                    (size_t)(end - digits));
}

void written_nothing(struct redis_context *context, struct redis_string *name)
{
    redis.SignalModifiedKey(context, name);
    redis.Replicate(context, "DEL", "s", name);
}
