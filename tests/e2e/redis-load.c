/* redis-load.c -- asks a Redis from several threads for some time, and says how it went.
 *
 *     redis-load URL THREADS SECONDS TIMEOUT_MS [KEYS [LIMIT [ids]]]
 *
 * Each ask increments one of KEYS counters, load:{0}, load:{1} ..., by a script; or with a LIMIT it
 * takes a unit from the account weir:{load:0}, weir:{load:1} ....  With ids an ask whose answer is
 * unknown is asked again, under the same id, until it is known.  SIGTERM ends it before its time.
 *
 * Prints one line of JSON: asks that were answered with a number, errors by their first word,
 * undone, unknown, the longest time without a good answer in ms, and the lateness of the latest
 * answer in ms: late_ms by the clock, own_late_ms without the time in which the caller's thread and
 * the client's were ready to run and had no processor, or the host's others had it (below 0: all
 * were early).
 */
#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/base.h"
#include "weir-redis.h"

enum { THREADS_MAX = 16, ASKS_MIN = 6 }; /* of a thread, however busy the machine is */

struct tally {
    long good, granted, refused, repeats, undone, unknown, errors;
    weir_time latest, own_latest, gap, stolen;
    char word[32], why[120]; /* of the last error; of the last that was not answered */
};

static struct weir_redis *redis;
static struct weir_redis_script *script;
static struct weir_redis_limit *limit; /* NULL: counters */
static bool ids;
static weir_time end, timeout;
static bool ended; /* by SIGTERM; atomic */
static int keys = 16;
static int client_waits = -1; /* the client's thread: its schedstat */

/* --------------------------------------------------------------- waiting ---- */

/* How long a thread has been ready to run without a processor, in ns. */
static weir_time waited(int fd)
{
    char text[96];
    ssize_t n = fd < 0 ? -1 : pread(fd, text, sizeof(text) - 1, 0);
    int64_t ran, waits = 0;

    if (n > 0) {
        text[n] = '\0';
        if (sscanf(text, "%" SCNd64 " %" SCNd64, &ran, &waits) != 2)
            waits = 0;
    }
    return waits;
}

/* How long all processors of this machine were not there, if it is a virtual one, in ns. */
static weir_time stolen(void)
{
    FILE *file = fopen("/proc/stat", "r");
    int64_t ticks = 0;

    if (!file || fscanf(file, "cpu %*d %*d %*d %*d %*d %*d %*d %" SCNd64, &ticks) != 1)
        ticks = 0;
    if (file)
        fclose(file);
    return ticks * (WEIR_SECOND / sysconf(_SC_CLK_TCK));
}

static int open_waits(const char *thread)
{
    char path[300];

    snprintf(path, sizeof(path), "/proc/%s/schedstat", thread);
    return open(path, O_RDONLY | O_CLOEXEC);
}

/* The thread that is not this one: the client's, as long as there are no others. */
static int open_client_waits(void)
{
    DIR *tasks = opendir("/proc/self/task");
    char thread[280] = "self/task/0";

    for (struct dirent *e; tasks && (e = readdir(tasks)) != NULL;)
        if (e->d_name[0] != '.' && atoi(e->d_name) != getpid())
            snprintf(thread, sizeof(thread), "self/task/%s", e->d_name);
    if (tasks)
        closedir(tasks);
    return open_waits(thread);
}

/* ---------------------------------------------------------------- asking ---- */

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

static void count_up(struct tally *t, unsigned i)
{
    char key[32];
    int len = snprintf(key, sizeof(key), "load:{%u}", i % (unsigned)keys);
    struct weir_key words[] = { WEIR_REDIS_TEXT("1"), { .bytes = key, .len = (size_t)len } };
    struct weir_redis_ask ask = {
        .words = words, .n = 2, .key = 1, .timeout = timeout, .script = script
    };
    struct weir_redis_answer answer;

    weir_redis_call(redis, &ask, &answer);
    note(t, &answer);
    weir_redis_answer_free(&answer);
}

static void note_result(struct tally *t, const struct weir_redis_result *r)
{
    if (r->outcome != WEIR_REDIS_ANSWERED)
        memcpy(t->why, r->why, sizeof(t->why));
    t->undone += r->outcome == WEIR_REDIS_UNDONE;
    t->unknown += r->outcome == WEIR_REDIS_UNKNOWN;
    t->good += r->outcome == WEIR_REDIS_ANSWERED;
    t->granted += r->outcome == WEIR_REDIS_ANSWERED && r->allowed;
    t->refused += r->outcome == WEIR_REDIS_ANSWERED && !r->allowed;
}

static void take_one(struct tally *t, unsigned i)
{
    char key[32], id[64];
    int len = snprintf(key, sizeof(key), "weir:{load:%u}", i % (unsigned)keys);
    int id_len = snprintf(id, sizeof(id), "%s:%d-%p-%u", key, (int)getpid(), (void *)t, i);
    struct weir_redis_item item = { .key = { key, (size_t)len }, .limit = limit, .cost = 1 };
    struct weir_redis_request ask = { .items = &item,
                                      .n = 1,
                                      .timeout = timeout,
                                      .id = { id, ids ? (size_t)id_len : 0 },
                                      .id_life = 60 * WEIR_SECOND };
    struct weir_redis_result result;

    weir_redis_take(redis, &ask, &result);
    for (int tries = 0; ids && result.outcome != WEIR_REDIS_ANSWERED && tries < 1000; tries++) {
        t->repeats++;
        weir__clock_sleep(WEIR_MILLISECOND);
        weir_redis_take(redis, &ask, &result);
    }
    note_result(t, &result);
}

static bool ask_once(struct tally *t, unsigned i, int waits)
{
    weir_time begun = weir__clock_monotonic(), before = waited(waits) + waited(client_waits);
    long good = t->good;

    (limit ? take_one : count_up)(t, i);
    weir_time late = weir__clock_monotonic() - begun - timeout;
    if (late > -timeout / 2) { /* not the usual answer */
        weir_time own = late - (waited(waits) + waited(client_waits) - before), was = t->stolen;
        t->stolen = stolen();
        own -= t->stolen - was; /* since the last such answer: counted in ticks of 10 ms */
        t->own_latest = own > t->own_latest ? own : t->own_latest;
    }
    t->latest = late > t->latest ? late : t->latest;
    return t->good > good;
}

static void on_term(int signal)
{
    (void)signal;
    __atomic_store_n(&ended, true, __ATOMIC_RELAXED);
}

static bool is_time(void)
{
    return !__atomic_load_n(&ended, __ATOMIC_RELAXED) && weir__clock_monotonic() < end;
}

static void *run(void *context)
{
    struct tally *t = context;
    weir_time last = weir__clock_monotonic();
    int waits = open_waits("thread-self");
    unsigned first = (unsigned)(uintptr_t)context % 97;

    t->stolen = stolen();
    for (unsigned i = 0; i < ASKS_MIN || is_time(); i++) {
        bool good = ask_once(t, first + i, waits);
        weir_time now = weir__clock_monotonic();
        t->gap = now - last > t->gap ? now - last : t->gap;
        last = good ? now : last;
        weir__clock_sleep(WEIR_MILLISECOND);
    }
    close(waits);
    return NULL;
}

static void print(const struct tally *all, int n)
{
    struct tally sum = { .latest = INT64_MIN, .own_latest = -timeout };

    for (int i = 0; i < n; i++) {
        sum.good += all[i].good;
        sum.granted += all[i].granted;
        sum.refused += all[i].refused;
        sum.repeats += all[i].repeats;
        sum.errors += all[i].errors;
        sum.undone += all[i].undone;
        sum.unknown += all[i].unknown;
        sum.latest = all[i].latest > sum.latest ? all[i].latest : sum.latest;
        sum.own_latest = all[i].own_latest > sum.own_latest ? all[i].own_latest : sum.own_latest;
        sum.gap = all[i].gap > sum.gap ? all[i].gap : sum.gap;
        if (all[i].word[0])
            memcpy(sum.word, all[i].word, sizeof(sum.word));
        if (all[i].why[0])
            memcpy(sum.why, all[i].why, sizeof(sum.why));
    }
    printf("{\"good\": %ld, \"granted\": %ld, \"refused\": %ld, \"repeats\": %ld, \"errors\": %ld, "
           "\"undone\": %ld, \"unknown\": %ld, \"late_ms\": %.3f, \"own_late_ms\": %.3f, "
           "\"gap_ms\": %.1f, \"error\": \"%s\", \"why\": \"%s\"}\n",
           sum.good, sum.granted, sum.refused, sum.repeats, sum.errors, sum.undone, sum.unknown,
           (double)sum.latest / 1e6, (double)sum.own_latest / 1e6, (double)sum.gap / 1e6, sum.word,
           sum.why);
}

static int create(const char *url, const char *text, struct weir_error *error)
{
    struct weir_limit parsed;
    int code = weir_redis_create(&redis, url, NULL, error);

    if (code == WEIR_OK && text)
        code = weir_limit_parse(&parsed, text, error);
    if (code == WEIR_OK && text)
        code = weir_redis_limit_create(&limit, &parsed, error);
    if (code == WEIR_OK)
        code = weir_redis_script_create(&script, "return redis.call('INCR', KEYS[1])", error);
    client_waits = open_client_waits();
    return code;
}

int main(int argc, char **argv)
{
    static struct tally tallies[THREADS_MAX];
    pthread_t threads[THREADS_MAX];
    struct weir_error error;
    struct sigaction term = { .sa_handler = on_term, .sa_flags = SA_RESTART };
    int n = argc > 4 ? atoi(argv[2]) : 0;

    if (n < 1 || n > THREADS_MAX) {
        fprintf(stderr, "usage: redis-load URL THREADS SECONDS TIMEOUT_MS [KEYS [LIMIT [ids]]]\n");
        return 2;
    }
    sigaction(SIGTERM, &term, NULL);
    end = weir__clock_monotonic() + (weir_time)(atof(argv[3]) * 1e9);
    timeout = atoi(argv[4]) * WEIR_MILLISECOND;
    keys = argc > 5 ? atoi(argv[5]) : keys;
    ids = argc > 7;
    if (create(argv[1], argc > 6 ? argv[6] : NULL, &error) != WEIR_OK) {
        fprintf(stderr, "redis-load: %s\n", error.text);
        return 2;
    }
    for (int i = 0; i < n; i++) {
        tallies[i].latest = INT64_MIN;
        tallies[i].own_latest = INT64_MIN;
        pthread_create(&threads[i], NULL, run, &tallies[i]);
    }
    for (int i = 0; i < n; i++)
        pthread_join(threads[i], NULL);
    weir_redis_destroy(redis);
    weir_redis_script_destroy(script);
    weir_redis_limit_destroy(limit);
    print(tallies, n);
    return 0;
}
