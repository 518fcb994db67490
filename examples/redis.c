/* redis.c -- asking Redis with a deadline, and knowing what to make of no answer.
 *
 *     redis [URL]
 *
 * Counts visits by a script, which Redis is sent once and then calls by name.  Whatever Redis does,
 * the answer is there after 200 ms: a reply, "undone" (it was certainly not counted) or "unknown"
 * (it was sent, and may have been).
 */
#include <inttypes.h>
#include <stdio.h>
#include <weir-redis.h>

static const char count_visit[] = "local n = redis.call('INCR', KEYS[1])\n"
                                  "redis.call('EXPIRE', KEYS[1], ARGV[1])\n"
                                  "return n\n";

static void show(const struct weir_redis_answer *answer)
{
    struct weir_redis_value value;
    size_t cursor = 0;

    if (answer->outcome == WEIR_REDIS_UNDONE)
        printf("not counted: %s\n", answer->why);
    else if (answer->outcome == WEIR_REDIS_UNKNOWN)
        printf("perhaps counted: %s\n", answer->why);
    else if (weir_redis_value_next(answer, &cursor, &value) && value.kind == ':')
        printf("visit %" PRId64 "\n", value.integer);
    else
        printf("Redis says: %.*s\n", (int)value.text.len, (const char *)value.text.bytes);
}

int main(int argc, char **argv)
{
    const char *url = argc > 1 ? argv[1] : "redis://127.0.0.1:1"; /* where nobody listens */
    struct weir_redis *redis;
    struct weir_redis_script *script;
    struct weir_error error;

    if (weir_redis_create(&redis, url, NULL, &error) ||
        weir_redis_script_create(&script, count_visit, &error)) {
        fprintf(stderr, "redis: %s\n", error.text);
        return 1;
    }
    struct weir_key words[] = { WEIR_REDIS_TEXT("1"), WEIR_REDIS_TEXT("visits:ann"),
                                WEIR_REDIS_TEXT("60") };
    struct weir_redis_ask ask = {
        .words = words, .n = 3, .key = 1, .timeout = 200 * WEIR_MILLISECOND, .script = script
    };
    for (int i = 0; i < 3; i++) {
        struct weir_redis_answer answer;
        weir_redis_call(redis, &ask, &answer);
        show(&answer);
        weir_redis_answer_free(&answer);
    }
    weir_redis_destroy(redis);
    weir_redis_script_destroy(script);
    return 0;
}
