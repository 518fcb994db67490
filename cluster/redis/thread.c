/* thread.c -- a client of Redis with a thread of its own: weir-redis.h.
 *
 * Callers leave their asks in a list under a mutex and wake the thread, which takes the whole list
 * at once: what was asked meanwhile leaves in one write.  The thread never waits for anything but
 * its descriptor and the next deadline, so a caller that waits for its answer has it in time.
 */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/base.h"
#include "base/thread.h"
#include "cluster/redis/drive.h"
#include "cluster/redis/thread.h"

struct weir_redis_script {
    struct weir__redis_script own;
    char text[];
};

struct weir_redis {
    struct weir__redis_drive *drive;
    struct weir__redis_duty duty;
    pthread_t thread;
    pthread_mutex_t mutex;
    pid_t pid;                             /* where the thread is */
    struct weir__redis_job *first, **last; /* under the mutex, as is `ending` */
    bool ending;
};

/* An ask on its way from a caller to the thread. */
struct pending {
    struct weir__redis_job job;
    struct weir__redis_ask ask;
    struct weir_redis_answer *answer; /* of a caller that waits; else */
    void (*done)(void *context, const struct weir_redis_answer *answer);
    void *context;
    uint32_t ready; /* the word a caller sleeps on */
};

/* ---------------------------------------------------------------- answers ---- */

static struct weir_redis_answer make_answer(const struct weir__redis_answer *answer)
{
    struct weir_redis_answer out = { .outcome = (enum weir_redis_outcome)answer->outcome };

    if (answer->outcome == WEIR__REDIS_ANSWERED) {
        out.reply = answer->reply.bytes;
        out.len = answer->reply.len;
    } else {
        snprintf(out.why, sizeof(out.why), "%s", answer->why);
    }
    return out;
}

static void hand_over(struct weir__redis_ask *ask, const struct weir__redis_answer *answer)
{
    struct pending *p = ask->context;
    struct weir_redis_answer out = make_answer(answer);

    p->done(p->context, &out);
    weir__redis_ask_free(ask);
    free(p);
}

/* The waiting caller may be gone as soon as the word is set. */
static void copy_over(struct weir__redis_ask *ask, const struct weir__redis_answer *answer)
{
    struct pending *p = ask->context;
    struct weir_redis_answer out = make_answer(answer);
    char *copy = out.reply ? malloc(out.len) : NULL;

    if (copy) {
        memcpy(copy, out.reply, out.len);
    } else if (out.reply) {
        out = (struct weir_redis_answer){ .outcome = WEIR_REDIS_UNKNOWN };
        snprintf(out.why, sizeof(out.why), "there was no memory for the reply");
    }
    out.reply = copy;
    *p->answer = out;
    weir__redis_ready_set(&p->ready);
}

void weir__redis_ready_set(uint32_t *word)
{
    __atomic_store_n(word, 1, __ATOMIC_RELEASE);
    weir__clock_wake_word(word);
}

void weir__redis_ready_wait(uint32_t *word)
{
    while (!__atomic_load_n(word, __ATOMIC_ACQUIRE))
        weir__clock_wait_word(word, 0, WEIR_FOREVER);
}

void weir_redis_answer_free(struct weir_redis_answer *answer)
{
    free((void *)(uintptr_t)answer->reply);
    answer->reply = NULL;
}

bool weir_redis_value_next(const struct weir_redis_answer *answer, size_t *cursor,
                           struct weir_redis_value *out)
{
    struct weir__resp_value v;

    if (!answer->reply || *cursor >= answer->len)
        return false;
    *cursor = (size_t)(weir__resp_value(answer->reply + *cursor, &v) - answer->reply);
    *out = (struct weir_redis_value){ .kind = v.kind,
                                      .integer = v.integer,
                                      .n = v.n,
                                      .text = { .bytes = v.text.bytes, .len = v.text.len } };
    return true;
}

/* ------------------------------------------------------------- the thread ---- */

static struct weir__redis_job *take_list(struct weir_redis *r, bool *ending)
{
    pthread_mutex_lock(&r->mutex);
    struct weir__redis_job *first = r->first;
    r->first = NULL;
    r->last = &r->first;
    *ending = r->ending;
    pthread_mutex_unlock(&r->mutex);
    return first;
}

/* A turn takes the wake-ups off, also of asks that came after the list was taken. */
static bool has_more(struct weir_redis *r)
{
    pthread_mutex_lock(&r->mutex);
    bool more = r->first != NULL || r->ending;
    pthread_mutex_unlock(&r->mutex);
    return more;
}

static void wait_for(int fd, weir_time span)
{
    struct pollfd watched = { .fd = fd, .events = POLLIN };
    struct timespec t = { .tv_sec = (time_t)(span / WEIR_SECOND),
                          .tv_nsec = (long)(span % WEIR_SECOND) };

    ppoll(&watched, 1, span == WEIR_NEVER ? NULL : &t, NULL);
}

static void *run(void *context)
{
    struct weir_redis *r = context;
    struct weir__redis_client *client = weir__redis_drive_client(r->drive);

    for (;;) {
        bool ending;
        struct weir__redis_job *next = take_list(r, &ending);
        weir_time now = weir__clock_monotonic();
        for (struct weir__redis_job *job = next; job; job = next) {
            next = job->next; /* it may be gone when it has begun */
            job->begin(job, client, now);
        }
        if (ending)
            return NULL;
        weir_time due = weir__redis_drive_turn(r->drive, now), own;
        now = weir__clock_monotonic();
        own = r->duty.turn ? r->duty.turn(r->duty.context, client, now) : WEIR_NEVER;
        due = own < due ? own : due;
        if (due > now && !has_more(r))
            wait_for(weir__redis_drive_fd(r->drive), due == WEIR_NEVER ? WEIR_NEVER : due - now);
    }
}

static int fill_options(struct weir__redis_options *o, const char *url,
                        const struct weir_redis_options *options, struct weir_error *error)
{
    if (options) {
        o->pool = options->connections;
        o->greet_max = options->connect_max;
        o->stall_max = options->stall_max;
        o->asks_max = options->asks_max > 0 ? (size_t)options->asks_max : 0;
    }
    if (weir__random_fill(&o->jitter, sizeof(o->jitter)) != 0)
        return weir__fail(error, WEIR_SYSTEM, "no random numbers: %s", strerror(errno));
    return weir__redis_url_parse(&o->url, url, error);
}

int weir__redis_thread_create(struct weir_redis **out, const char *url,
                              const struct weir_redis_options *options,
                              const struct weir__redis_duty *duty, struct weir_error *error)
{
    struct weir__redis_options o = { .pool = 0 };
    int code = fill_options(&o, url, options, error);
    struct weir_redis *r = code == WEIR_OK ? calloc(1, sizeof(*r)) : NULL;

    if (code != WEIR_OK)
        return code;
    if (!r)
        return weir__fail(error, WEIR_NO_MEMORY, "no memory for a client of Redis");
    r->last = &r->first;
    r->duty = *duty;
    r->pid = getpid();
    code = weir__redis_drive_create(&r->drive, &o, error);
    pthread_mutex_init(&r->mutex, NULL);
    int number = code == WEIR_OK ? weir__thread_start(&r->thread, run, r) : 0;
    if (number != 0)
        code =
            weir__fail(error, WEIR_SYSTEM, "no thread for a client of Redis: %s", strerror(number));
    if (code == WEIR_OK) {
        *out = r;
        return WEIR_OK;
    }
    weir__redis_drive_destroy(r->drive);
    pthread_mutex_destroy(&r->mutex);
    free(r);
    return code;
}

int weir_redis_create(struct weir_redis **out, const char *url,
                      const struct weir_redis_options *options, struct weir_error *error)
{
    return weir__redis_thread_create(out, url, options, &(struct weir__redis_duty){ 0 }, error);
}

/* In a child of fork: there is no thread, and what it waited for is its parent's. */
static bool is_inherited(const struct weir_redis *r)
{
    return r->pid != getpid();
}

/* The client refuses them, at once. */
static void begin_all(struct weir_redis *r, struct weir__redis_job *first)
{
    struct weir__redis_client *client = weir__redis_drive_client(r->drive);

    for (struct weir__redis_job *job = first, *next; job; job = next) {
        next = job->next; /* it may be gone when it has begun */
        job->begin(job, client, weir__clock_monotonic());
    }
}

/* A child leaves everything as it is: sockets are in a set that its parent uses, and asks that are
 * not answered yet are its parent's. */
void weir_redis_destroy(struct weir_redis *r)
{
    struct weir__redis_job *late;
    bool ending;

    if (!r || is_inherited(r))
        return;
    pthread_mutex_lock(&r->mutex);
    r->ending = true;
    pthread_mutex_unlock(&r->mutex);
    weir__redis_drive_wake(r->drive);
    pthread_join(r->thread, NULL);
    weir__redis_drive_end(r->drive);
    while ((late = take_list(r, &ending)) != NULL) /* `done` may have asked anew */
        begin_all(r, late);
    weir__redis_drive_destroy(r->drive);
    pthread_mutex_destroy(&r->mutex);
    free(r);
}

/* ------------------------------------------------------- what may be asked ---- */

static bool is_word(const struct weir_key *word, const char *name)
{
    return word->len == strlen(name) && strncasecmp(word->bytes, name, word->len) == 0;
}

static bool is_pair(const struct weir_redis_ask *ask, const char *first, const char *second)
{
    return ask->n > 1 && is_word(&ask->words[0], first) && is_word(&ask->words[1], second);
}

/* All who ask share the connections.  These would change one for the others, or have not one reply:
 * then each of the others would get the answer of somebody else.  NULL: it is none of them. */
static const char *problem_of(const struct weir_redis_ask *ask)
{
    static const char *const names[] = {
        "ASKING",    "AUTH",         "DISCARD",     "EXEC",    "HELLO",        "MONITOR",
        "MULTI",     "PSUBSCRIBE",   "PSYNC",       "QUIT",    "PUNSUBSCRIBE", "READONLY",
        "READWRITE", "REPLCONF",     "RESET",       "SELECT",  "SSUBSCRIBE",   "SUBSCRIBE",
        "SYNC",      "SUNSUBSCRIBE", "UNSUBSCRIBE", "UNWATCH", "WATCH",
    };
    static const char shared[] = "the connection is shared: such a command would change it";

    if (ask->script)
        return NULL;
    if (ask->n == 0)
        return "there is no command";
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (is_word(&ask->words[0], names[i]))
            return shared;
    return is_pair(ask, "CLIENT", "REPLY") || is_pair(ask, "SCRIPT", "DEBUG") ? shared : NULL;
}

static struct weir_redis_answer undone(const char *why)
{
    struct weir_redis_answer answer = { .outcome = WEIR_REDIS_UNDONE };

    snprintf(answer.why, sizeof(answer.why), "%s", why);
    return answer;
}

/* ----------------------------------------------------------------- asking ---- */

int weir_redis_script_create(struct weir_redis_script **out, const char *text,
                             struct weir_error *error)
{
    size_t len = strlen(text);
    struct weir_redis_script *script = malloc(sizeof(*script) + len + 1);

    if (!script)
        return weir__fail(error, WEIR_NO_MEMORY, "no memory for a script");
    memcpy(script->text, text, len + 1);
    script->own = weir__redis_script(script->text, len);
    *out = script;
    return WEIR_OK;
}

void weir_redis_script_destroy(struct weir_redis_script *script)
{
    free(script);
}

static void begin(struct weir__redis_job *job, struct weir__redis_client *client, weir_time now)
{
    weir__redis_client_ask(client, &((struct pending *)job)->ask, now);
}

weir_time weir__redis_deadline(weir_time timeout)
{
    weir_time now = weir__clock_monotonic();

    return timeout < WEIR_NEVER - now ? now + timeout : WEIR_NEVER;
}

static void fill_ask(struct pending *p, const struct weir_redis_ask *ask)
{
    struct weir__redis_ask *to = &p->ask;
    const struct weir_key *key = ask->key > 0 && ask->key < ask->n ? &ask->words[ask->key] : NULL;

    p->job.begin = begin;
    for (size_t i = 0; i < ask->n; i++)
        weir__redis_ask_word(to, ask->words[i].bytes, ask->words[i].len);
    to->script = ask->script ? &ask->script->own : NULL;
    to->slot = key ? weir__redis_slot(key->bytes, key->len) : WEIR__REDIS_ANY_SLOT;
    to->deadline = weir__redis_deadline(ask->timeout);
    to->repeatable = ask->repeatable;
    to->context = p;
}

void weir__redis_thread_put_all(struct weir_redis *r, struct weir__redis_job *first,
                                struct weir__redis_job *last)
{
    if (is_inherited(r)) {
        weir__redis_client_refuse(weir__redis_drive_client(r->drive),
                                  "a child of fork needs a client of its own");
        begin_all(r, first);
        return;
    }
    pthread_mutex_lock(&r->mutex);
    bool asleep = r->first == NULL;
    *r->last = first;
    r->last = &last->next;
    pthread_mutex_unlock(&r->mutex);
    if (asleep)
        weir__redis_drive_wake(r->drive);
}

void weir__redis_thread_put(struct weir_redis *r, struct weir__redis_job *job)
{
    job->next = NULL;
    weir__redis_thread_put_all(r, job, job);
}

enum weir_redis_outcome weir_redis_call(struct weir_redis *r, const struct weir_redis_ask *ask,
                                        struct weir_redis_answer *answer)
{
    struct pending p = { .answer = answer };
    const char *problem = problem_of(ask);

    if (problem) {
        *answer = undone(problem);
        return answer->outcome;
    }
    fill_ask(&p, ask);
    p.ask.done = copy_over;
    weir__redis_thread_put(r, &p.job);
    weir__redis_ready_wait(&p.ready);
    weir__redis_ask_free(&p.ask);
    return answer->outcome;
}

void weir_redis_submit(struct weir_redis *r, const struct weir_redis_ask *ask,
                       void (*done)(void *context, const struct weir_redis_answer *answer),
                       void *context)
{
    const char *problem = problem_of(ask);
    struct pending *p = problem ? NULL : calloc(1, sizeof(*p));

    if (!p) {
        struct weir_redis_answer none = undone(problem ? problem : "there was no memory for it");
        done(context, &none);
        return;
    }
    fill_ask(p, ask);
    p->ask.done = hand_over;
    p->done = done;
    p->context = context;
    weir__redis_thread_put(r, &p->job);
}
