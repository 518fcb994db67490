/* side-string.c -- a small string beside an account, under its own key. */
#include "redis-module/side-string.h"

#include <string.h>

#include "redis-module/account.h"
#include "redis-module/replicate.h"

long side_string_read(struct redis_context *context, struct redis_string *name, unsigned char *out,
                      size_t size)
{
    struct redis_key *key = redis.OpenKey(context, name, REDIS_READ);
    int type = redis.KeyType(key);
    long found = type == REDIS_KEY_EMPTY ? SIDE_STRING_NONE : SIDE_STRING_FOREIGN;
    size_t len = 0;

    if (type == REDIS_KEY_STRING) {
        const char *bytes = redis.StringDMA(key, &len, REDIS_READ);
        if (len > 0 && len <= size) {
            memcpy(out, bytes, len);
            found = (long)len;
        }
    }
    redis.CloseKey(key);
    return found;
}

void side_string_write(struct redis_context *context, struct redis_string *name,
                       const unsigned char *bytes, size_t len, long long life)
{
    struct redis_key *key = redis.OpenKey(context, name, REDIS_READ | REDIS_WRITE);
    size_t room;

    life += module_test_clock >= 0 ? 3600 * 1000 : 0; /* a test's clock stands still */
    redis.StringTruncate(key, len);
    memcpy(redis.StringDMA(key, &room, REDIS_WRITE), bytes, len);
    tell_written(context, key, name, bytes, len, redis.Milliseconds() + life);
    redis.CloseKey(key);
}
