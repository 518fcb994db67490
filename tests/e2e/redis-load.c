/* redis-load.c -- asks a Redis from several threads for some time, and says how it went.
 *
 *     redis-load URL THREADS SECONDS TIMEOUT_MS [KEYS]
 *
 * Each ask increments one of KEYS counters, load:{0}, load:{1} ..., by a script.  Prints one line
 * of JSON: asks that were answered with a number, errors by their first word, undone, unknown, the
 * lateness of the latest answer in ms, and the longest time without a good answer in ms.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "weir-redis.h"

enum { THREADS_MAX = 16 };

struct tally {
    long good, undone, unknown, errors;
    weir_time latest, gap;
    char word[32], why[120]; /* of the last error; of the last that was not answered */
};

static struct weir_redis *redis;
static struct weir_redis_script *script;
static weir_time end, timeout;
static int keys = 16;

static void note_error(struct tally *t, const struct weir_redis_value *v)
{
    const char *text = v->text.bytes;
    size_t n = 0;

    while (n < v->text.len && n < sizeof(t->word) - 1 && text[n] != ' ')
        n++;
    memcpy(t->word, text, n);
    t->word[n] = '\0';
    t->errors++;
}

static void note(struct tally *t, const struct weir_redis_answer *answer)
{
    struct weir_redis_value v = { .kind = 0 };
    size_t at = 0;

    if (answer->outcome != WEIR_REDIS_ANSWERED)
        memcpy(t->why, answer->why, sizeof(t->why));
    t->undone += answer->outcome == WEIR_REDIS_UNDONE;
    t->unknown += answer->outcome == WEIR_REDIS_UNKNOWN;
    if (weir_redis_value_next(answer, &at, &v) && v.kind == '-')
        note_error(t, &v);
    t->good += v.kind == ':';
}

static bool ask_once(struct tally *t, unsigned i)
{
    char key[32];
    int len = snprintf(key, sizeof(key), "load:{%u}", i % (unsigned)keys);
    struct weir_key words[] = { WEIR_REDIS_TEXT("1"), { .bytes = key, .len = (size_t)len } };
    struct weir_redis_ask ask = {
        .words = words, .n = 2, .key = 1, .timeout = timeout, .script = script
    };
    struct weir_redis_answer answer;
    weir_time begun = weir__clock_monotonic();
    long good = t->good;

    weir_redis_call(redis, &ask, &answer);
    weir_time late = weir__clock_monotonic() - begun - timeout;
    t->latest = late > t->latest ? late : t->latest;
    note(t, &answer);
    weir_redis_answer_free(&answer);
    return t->good > good;
}

static void *run(void *context)
{
    struct tally *t = context;
    weir_time last = weir__clock_monotonic();

    for (unsigned i = (unsigned)(uintptr_t)context % 97; weir__clock_monotonic() < end; i++) {
        bool good = ask_once(t, i);
        weir_time now = weir__clock_monotonic();
        t->gap = now - last > t->gap ? now - last : t->gap;
        last = good ? now : last;
        weir__clock_sleep(WEIR_MILLISECOND);
    }
    return NULL;
}

static void print(const struct tally *all, int n)
{
    struct tally sum = { .latest = INT64_MIN };

    for (int i = 0; i < n; i++) {
        sum.good += all[i].good;
        sum.errors += all[i].errors;
        sum.undone += all[i].undone;
        sum.unknown += all[i].unknown;
        sum.latest = all[i].latest > sum.latest ? all[i].latest : sum.latest;
        sum.gap = all[i].gap > sum.gap ? all[i].gap : sum.gap;
        if (all[i].word[0])
            memcpy(sum.word, all[i].word, sizeof(sum.word));
        if (all[i].why[0])
            memcpy(sum.why, all[i].why, sizeof(sum.why));
    }
    printf("{\"good\": %ld, \"errors\": %ld, \"undone\": %ld, \"unknown\": %ld, "
           "\"late_ms\": %.3f, \"gap_ms\": %.1f, \"error\": \"%s\", \"why\": \"%s\"}\n",
           sum.good, sum.errors, sum.undone, sum.unknown, (double)sum.latest / 1e6,
           (double)sum.gap / 1e6, sum.word, sum.why);
}

int main(int argc, char **argv)
{
    static struct tally tallies[THREADS_MAX];
    pthread_t threads[THREADS_MAX];
    struct weir_error error;
    int n = argc > 4 ? atoi(argv[2]) : 0;

    if (n < 1 || n > THREADS_MAX) {
        fprintf(stderr, "usage: redis-load URL THREADS SECONDS TIMEOUT_MS [KEYS]\n");
        return 2;
    }
    end = weir__clock_monotonic() + (weir_time)(atof(argv[3]) * 1e9);
    timeout = atoi(argv[4]) * WEIR_MILLISECOND;
    keys = argc > 5 ? atoi(argv[5]) : keys;
    if (weir_redis_create(&redis, argv[1], NULL, &error) != WEIR_OK ||
        weir_redis_script_create(&script, "return redis.call('INCR', KEYS[1])", &error) !=
            WEIR_OK) {
        fprintf(stderr, "redis-load: %s\n", error.text);
        return 2;
    }
    for (int i = 0; i < n; i++) {
        tallies[i].latest = INT64_MIN;
        pthread_create(&threads[i], NULL, run, &tallies[i]);
    }
    for (int i = 0; i < n; i++)
        pthread_join(threads[i], NULL);
    weir_redis_destroy(redis);
    weir_redis_script_destroy(script);
    print(tallies, n);
    return 0;
}
