/* asks.c -- asks that wait: each is answered once or was cancelled, whatever races with what; more
 * than can wait are decided at once.  There is no Redis: all are decided alone in the end. */
#include "unit/test.h"

#include <pthread.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/base.h"
#include "cluster/agent/agent.h"
#include "table/agent-lease.h"
#include "unit/fixture.h"

enum { THREADS = 4, ROUNDS = 500, MANY = 5000 };

static struct weir *weir;
static struct weir_fleet *fleet;
static int64_t answered, refused; /* atomic */

/* What a caller has for each ask: gone as soon as it is cancelled or answered. */
struct caller {
    uint64_t mark;
};

static weir_time now_of(void)
{
    return weir_table_now(weir_table_of(weir));
}

static void begin(const char *within)
{
    char text[256];
    struct weir_rules *rules;
    struct weir_error error;
    int len = snprintf(text, sizeof(text),
                       "version: 1\nrules:\n  - name: r\n    key: \"{user}\"\n    limit: 5/1s\n"
                       "    across: fleet\n    within: %s\n    when_alone: open\n",
                       within);

    assert_int_equal(weir_create(&weir, NULL, &error), WEIR_OK);
    assert_int_equal(weir_rules_parse(&rules, text, (size_t)len, NULL, &error), WEIR_OK);
    assert_int_equal(weir_use(weir, rules, now_of(), &error), WEIR_OK);
    assert_int_equal(weir_fleet_join(&fleet, weir, "redis://127.0.0.1:1", NULL, &error), WEIR_OK);
    answered = refused = 0;
}

static void end(void)
{
    weir_fleet_leave(fleet);
    weir_destroy(weir);
}

static void done(void *context, const struct weir_ruling *ruling, const char *key)
{
    struct caller *c = context;

    (void)key;
    if (c->mark != 0x6d61726b)
        abort();
    __atomic_fetch_add(&refused, !ruling->decision.allowed, __ATOMIC_RELAXED);
    c->mark = 0;
    free(c);
    __atomic_fetch_add(&answered, 1, __ATOMIC_RELAXED);
}

typedef void answerer(void *context, const struct weir_ruling *ruling, const char *key);

/* True: it waits. */
static bool ask_by(answerer *by, const char *user, uint64_t *ticket, struct caller **out)
{
    struct weir_attr attr = { .name = "user", .value = user };
    struct caller *c = malloc(sizeof(*c));
    struct weir_fleet_ask ask = {
        .attrs = &attr, .n = 1, .ask = { .cost = 1, .now = now_of() }, .done = by, .context = c
    };
    struct weir_ruling ruling;
    char key[WEIR_KEY_TEXT];

    assert_non_null(c);
    c->mark = 0x6d61726b;
    if (out)
        *out = c;
    weir__fleet_renew(weir_table_of(weir), now_of() + 5 * WEIR_SECOND); /* purses are asked */
    if (!weir_fleet_ask(fleet, &ask, &ruling, key, ticket))
        return true;
    free(c);
    return false;
}

static void *race(void *context)
{
    uint64_t dice = (uintptr_t)context * 0x9e3779b97f4a7c15u, ticket;
    struct caller *c;
    int64_t waited = 0;

    for (int i = 0; i < ROUNDS; i++) {
        char user[16];
        dice = dice * 6364136223846793005u + 1442695040888963407u;
        snprintf(user, sizeof(user), "u%u", (unsigned)(dice >> 60));
        if (!ask_by(done, user, &ticket, &c))
            continue;
        weir__clock_sleep((weir_time)(dice >> 33) % (2 * WEIR_MILLISECOND));
        if (weir_fleet_cancel(fleet, ticket)) {
            assert_int_equal(c->mark, 0x6d61726b);
            c->mark = 0;
            free(c);
            assert_false(weir_fleet_cancel(fleet, ticket));
        } else {
            waited++;
        }
    }
    return (void *)(intptr_t)waited;
}

RACE(test_D3_an_ask_is_answered_once_or_cancelled)
{
    pthread_t threads[THREADS];
    int64_t waited = 0;
    void *n;

    begin("1ms");
    for (intptr_t i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, race, (void *)(i + 1)), 0);
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], &n);
        waited += (intptr_t)n;
    }
    end();
    assert_true(waited > 0);
    assert_int_equal(answered, waited);
}

static uint32_t held, released; /* words */

static void hold(void *context, const struct weir_ruling *ruling, const char *key)
{
    weir__redis_ready_set(&held);
    weir__redis_ready_wait(&released);
    done(context, ruling, key);
}

/* The agent stands still in an answer: nobody's place is given back. */
RACE(test_D3_more_than_can_wait_are_decided_at_once)
{
    uint64_t ticket;
    int64_t waited = 0;
    char user[16];

    begin("1ms");
    assert_true(ask_by(hold, "first", &ticket, NULL));
    weir__redis_ready_wait(&held);
    for (int i = 0; i < MANY; i++) {
        snprintf(user, sizeof(user), "u%d", i);
        waited += ask_by(done, user, &ticket, NULL);
    }
    assert_int_equal(waited, WEIR__AGENT_ASKS - 1);
    weir__redis_ready_set(&released);
    end();
    assert_int_equal(answered, WEIR__AGENT_ASKS);
    assert_int_equal(refused, 0);
}

/* Its caller gives up while it is being decided: it waits no longer. */
TEST(test_D3_an_ask_that_is_busy_is_cancelled)
{
    struct weir__agent_ask *a = calloc(1, sizeof(*a));
    struct weir_fleet f = { .asks = a };

    assert_non_null(a);
    a->word = WEIR__ASK_WAITS;
    assert_true(weir__ask_begin(a));
    assert_true(weir__ask_go_on(a));
    assert_true(weir__ask_begin(a));
    assert_false(weir_fleet_cancel(&f, 0)); /* `done` is called */
    assert_false(weir_fleet_cancel(&f, 0));
    assert_false(weir__ask_go_on(a));
    assert_false(weir__ask_begin(a));
    assert_int_equal(a->word, WEIR__ASK_BUSY_CANCELLED);
    free(a);
}

/* It has none of the threads, and a mutex that one of them held. */
RACE(test_D3_a_child_touches_no_mutex)
{
    struct weir_attr attr = { .name = "user", .value = "ann" };
    struct weir_ruling ruling;
    struct weir_fleet_info info;
    int status;

    begin("1ms");
    while (__atomic_load_n(&fleet->n_across, __ATOMIC_ACQUIRE) == 0) { /* the agent begins */
        struct weir_ask one = { .cost = 1, .now = now_of() };
        weir__fleet_renew(weir_table_of(weir), now_of() + 5 * WEIR_SECOND);
        weir_fleet_check(fleet, &attr, 1, &one, &ruling);
    }
    ruling = (struct weir_ruling){ .rule = fleet->across[0], .decision.reason = WEIR_LIMITED };
    pthread_mutex_lock(&fleet->mutex);
    pid_t child = fork();
    if (child == 0) {
        alarm(20);
        weir_fleet_refused(fleet, &ruling, "ann", 1);
        weir_fleet_look(fleet, &info);
        _exit(0);
    }
    pthread_mutex_unlock(&fleet->mutex);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    end();
}

/* It has none of the threads. */
RACE(test_D3_a_child_does_not_wait)
{
    struct weir_attr attr = { .name = "user", .value = "ann" };
    struct weir_ruling ruling;
    int status;

    begin("10s");
    weir__fleet_renew(weir_table_of(weir), now_of() + 5 * WEIR_SECOND);
    pid_t child = fork();
    if (child == 0) {
        struct weir_ask one = { .cost = 1, .now = now_of() };
        bool passed = weir_fleet_check(fleet, &attr, 1, &one, &ruling);
        weir_fleet_leave(fleet);
        _exit(passed ? 0 : 1);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    end();
}
