/* redis.c -- a limit whose state lives in Redis, and knowing what to make of no answer.
 *
 *     redis [URL]
 *
 * Whatever Redis does, the answer is there after 500 ms: a decision, "undone" (certainly not
 * charged) or "unknown" (it was sent, and may have been).  Each ask has an id, so that a lost answer
 * is asked for again and charged once.
 */
#include <inttypes.h>
#include <stdio.h>
#include <weir-redis.h>

static void show(const struct weir_redis_result *result)
{
    const struct weir_decision *d = &result->decisions[0];

    if (result->outcome == WEIR_REDIS_UNDONE)
        printf("not charged: %s\n", result->why);
    else if (result->outcome == WEIR_REDIS_UNKNOWN)
        printf("perhaps charged: %s\n", result->why);
    else if (result->allowed)
        printf("come in, %" PRId64 " of %" PRId64 " left\n", d->remaining, d->limit);
    else
        printf("come back in %" PRId64 " s\n", d->retry / WEIR_SECOND + 1);
}

int main(int argc, char **argv)
{
    const char *url = argc > 1 ? argv[1] : "redis://127.0.0.1:1"; /* where nobody listens */
    struct weir_redis *redis;
    struct weir_redis_limit *limit;
    struct weir_error error;

    if (weir_redis_create(&redis, url, NULL, &error) ||
        weir_redis_limit_create(
            &limit, &(struct weir_limit){ .count = 2, .period = 60 * WEIR_SECOND }, &error)) {
        fprintf(stderr, "redis: %s\n", error.text);
        return 1;
    }
    for (int i = 0; i < 3; i++) {
        char id[32];
        int len = snprintf(id, sizeof(id), "visits:{ann}:%d", i);
        struct weir_redis_item item = { .key = WEIR_REDIS_TEXT("visits:{ann}"),
                                        .limit = limit,
                                        .cost = 1 };
        struct weir_redis_request ask = {
            .items = &item, .n = 1, .timeout = 500 * WEIR_MILLISECOND, .id = { id, (size_t)len }
        };
        struct weir_redis_result result;
        weir_redis_take(redis, &ask, &result);
        show(&result);
    }
    weir_redis_destroy(redis);
    weir_redis_limit_destroy(limit);
    return 0;
}
