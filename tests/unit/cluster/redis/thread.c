/* thread.c -- the calls of weir-redis.h, with a redis-server on a unix socket: each verb by a
 * caller that waits and by a callback, any other command, a server that stands still, the end. */
#include "unit/test.h"

#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/base.h"
#include "vectors/runner/redis-server.h"
#include "weir-redis.h"

struct world {
    struct redis_server server;
    struct weir_redis *redis;
    struct weir_redis_limit *limit; /* 10 an hour */
};

static int start_world(void **out)
{
    static struct world w;
    struct weir_error error;
    char url[160];

    memset(&w, 0, sizeof(w));
    assert_ok(redis_server_start(&w.server, NULL, &error));
    snprintf(url, sizeof(url), "unix://%s/socket", w.server.directory);
    assert_ok(weir_redis_create(&w.redis, url, NULL, &error));
    assert_ok(weir_redis_limit_create(
        &w.limit, &(struct weir_limit){ .count = 10, .period = 3600 * WEIR_SECOND }, &error));
    *out = &w;
    return 0;
}

static int end_world(void **state)
{
    struct world *w = *state;

    weir_redis_destroy(w->redis);
    weir_redis_limit_destroy(w->limit);
    redis_server_stop(&w->server);
    return 0;
}

/* What callbacks bring, for a thread that waits for them. */
struct box {
    pthread_mutex_t mutex;
    pthread_cond_t change;
    int came;
    struct weir_redis_result result;
    enum weir_redis_outcome outcome;
    int64_t integer;
    char text[120];
};

#define BOX                                                                     \
    (struct box)                                                                \
    {                                                                           \
        .mutex = PTHREAD_MUTEX_INITIALIZER, .change = PTHREAD_COND_INITIALIZER, \
    }

static void came(struct box *box)
{
    pthread_mutex_lock(&box->mutex);
    box->came++;
    pthread_cond_signal(&box->change);
    pthread_mutex_unlock(&box->mutex);
}

static void await(struct box *box, int n)
{
    pthread_mutex_lock(&box->mutex);
    while (box->came < n)
        pthread_cond_wait(&box->change, &box->mutex);
    pthread_mutex_unlock(&box->mutex);
}

static void decided(void *context, const struct weir_redis_result *result)
{
    struct box *box = context;

    box->result = *result;
    came(box);
}

static void replied(void *context, const struct weir_redis_answer *answer)
{
    struct box *box = context;
    struct weir_redis_value value = { .integer = -1 };
    size_t cursor = 0;

    weir_redis_value_next(answer, &cursor, &value);
    box->integer = value.integer;
    box->outcome = answer->outcome;
    snprintf(box->text, sizeof(box->text), "%s", answer->why);
    came(box);
}

/* One ask: the caller waits, or has a callback; then its keys are gone when the call returns. */
static struct weir_redis_result ask(struct world *w, bool waits, enum weir_redis_verb verb,
                                    int64_t cost, weir_time drawn_at)
{
    static enum weir_redis_outcome (*const calls[])(
        struct weir_redis *, const struct weir_redis_request *, struct weir_redis_result *) = {
        weir_redis_take, weir_redis_peek,  weir_redis_give,
        weir_redis_draw, weir_redis_repay, weir_redis_reset,
    };
    char key[] = "{k}account", demand[] = "{k}demand";
    struct weir_redis_item item = { .key = { key, sizeof(key) - 1 },
                                    .limit = verb == WEIR_REDIS_RESET ? NULL : w->limit,
                                    .cost = cost };
    struct weir_redis_request request = {
        .items = &item,
        .n = 1,
        .timeout = 60 * WEIR_SECOND,
        .draw = { .demand = { demand, sizeof(demand) - 1 }, .waiting = cost, .drawn_at = drawn_at }
    };
    struct box box = BOX;

    if (waits) {
        assert_int_equal(calls[verb](w->redis, &request, &box.result), box.result.outcome);
    } else {
        weir_redis_decide(w->redis, verb, &request, decided, &box);
        memset(key, 'x', sizeof(key));
        memset(demand, 'x', sizeof(demand));
        await(&box, 1);
    }
    assert_int_equal(box.result.outcome, WEIR_REDIS_ANSWERED);
    return box.result;
}

static void ask_each_verb(struct world *w, bool waits)
{
    struct weir_redis_result r = ask(w, waits, WEIR_REDIS_TAKE, 4, 0);

    assert_true(r.allowed && r.decisions[0].remaining == 6);
    assert_false(ask(w, waits, WEIR_REDIS_TAKE, 7, 0).allowed);
    assert_true(ask(w, waits, WEIR_REDIS_GIVE, 1, 0).allowed);
    r = ask(w, waits, WEIR_REDIS_PEEK, 0, 0);
    assert_true(r.allowed && r.decisions[0].remaining == 7);
    r = ask(w, waits, WEIR_REDIS_DRAW, 3, 0);
    assert_true(r.units == 3 && r.drawn_at > 0 && r.life > 0);
    assert_int_equal(ask(w, waits, WEIR_REDIS_REPAY, 2, r.drawn_at).units, 2);
    assert_int_equal(ask(w, waits, WEIR_REDIS_PEEK, 0, 0).decisions[0].remaining, 6);
    assert_int_equal(ask(w, waits, WEIR_REDIS_RESET, 0, 0).found, 1);
    assert_int_equal(ask(w, waits, WEIR_REDIS_RESET, 0, 0).found, 0);
    assert_int_equal(ask(w, waits, WEIR_REDIS_PEEK, 0, 0).decisions[0].remaining, 10);
}

RACE_WITH(test_D1_each_verb_by_a_caller_that_waits, start_world, end_world)
{
    ask_each_verb(*state, true);
}

RACE_WITH(test_D1_each_verb_by_a_callback, start_world, end_world)
{
    ask_each_verb(*state, false);
}

RACE_WITH(test_D1_nothing_to_ask, start_world, end_world)
{
    struct world *w = *state;
    struct box box = BOX;

    weir_redis_decide(w->redis, WEIR_REDIS_TAKE, &(struct weir_redis_request){ .n = 0 }, decided,
                      &box);
    assert_int_equal(box.came, 1);
    assert_int_equal(box.result.outcome, WEIR_REDIS_UNDONE);
}

#define WORDS_MAX 8

static void submit(struct world *w, struct box *box, const char *text)
{
    struct weir_key words[WORDS_MAX];
    char copy[80], *rest = NULL;
    size_t n = 0;

    snprintf(copy, sizeof(copy), "%s", text);
    for (char *word = strtok_r(copy, " ", &rest); word; word = strtok_r(NULL, " ", &rest))
        words[n++] = (struct weir_key){ word, strlen(word) };
    weir_redis_submit(
        w->redis, &(struct weir_redis_ask){ .words = words, .n = n, .timeout = WEIR_SECOND * 60 },
        replied, box);
    memset(copy, 'x', sizeof(copy));
    memset(words, 0, sizeof(words));
}

RACE_WITH(test_D1_any_command_by_a_callback, start_world, end_world)
{
    struct world *w = *state;
    struct box box = BOX;

    for (int i = 1; i <= 20; i++) {
        submit(w, &box, "INCRBY counter 3");
        await(&box, i);
        assert_int_equal(box.outcome, WEIR_REDIS_ANSWERED);
        assert_int_equal(box.integer, 3 * i);
    }
}

/* Until then the client may send it again by itself; then the caller may. */
RACE_WITH(test_D1_an_id_is_remembered_beyond_the_deadline, start_world, end_world)
{
    static const weir_time lives[] = { 0, WEIR_SECOND, 90 * WEIR_SECOND };
    struct world *w = *state;

    for (size_t i = 0; i < 3; i++) {
        struct box box = BOX;
        char id[] = "id0", command[] = "PTTL id0";
        struct weir_redis_item item = { .key = WEIR_REDIS_TEXT("k"), .limit = w->limit, .cost = 1 };
        struct weir_redis_request request = { .items = &item,
                                              .n = 1,
                                              .timeout = 60 * WEIR_SECOND,
                                              .id = { id, 3 },
                                              .id_life = lives[i] };
        id[2] = command[7] = (char)('0' + i);
        assert_int_equal(weir_redis_take(w->redis, &request, &box.result), WEIR_REDIS_ANSWERED);
        submit(w, &box, command);
        await(&box, 1);
        assert_in_range(box.integer, 30000 + lives[i] / WEIR_MILLISECOND, 160000);
    }
}

/* All who ask share the connection: others would get no answer, or that of somebody else. */
RACE_WITH(test_D1_commands_that_would_change_the_connection, start_world, end_world)
{
    static const char *const commands[] = {
        "",
        "MULTI",
        "multi",
        "EXEC",
        "SELECT 1",
        "HELLO 2",
        "SUBSCRIBE a b",
        "CLIENT REPLY OFF",
        "client reply skip",
        "SCRIPT DEBUG YES",
        "MONITOR",
        "QUIT",
        "RESET",
        "PSUBSCRIBE a",
        "WATCH k",
        "AUTH x",
        "READONLY",
        "UNSUBSCRIBE",
    };
    struct world *w = *state;

    for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
        struct box box = BOX, others = BOX;
        submit(w, &box, commands[i]);
        submit(w, &others, "INCR counter");
        await(&box, 1);
        await(&others, 1);
        assert_int_equal(box.outcome, WEIR_REDIS_UNDONE);
        assert_int_equal(others.outcome, WEIR_REDIS_ANSWERED);
        assert_int_equal(others.integer, i + 1);
    }
}

RACE_WITH(test_D1_a_callback_comes_by_its_deadline, start_world, end_world)
{
    struct world *w = *state;
    struct box box = BOX;
    struct weir_redis_item item = { .key = WEIR_REDIS_TEXT("k"), .limit = w->limit, .cost = 1 };
    struct weir_redis_request request = { .items = &item,
                                          .n = 1,
                                          .timeout = 20 * WEIR_MILLISECOND };

    ask(w, true, WEIR_REDIS_PEEK, 0, 0); /* it is connected */
    kill(w->server.pid, SIGSTOP);
    for (int i = 0; i < 20; i++)
        weir_redis_decide(w->redis, WEIR_REDIS_TAKE, &request, decided, &box);
    await(&box, 20);
    kill(w->server.pid, SIGCONT);
    assert_int_not_equal(box.result.outcome, WEIR_REDIS_ANSWERED);
    assert_true(box.result.why[0] != '\0');
}

/* It has no thread that would answer: what it asks is undone, and nobody waits. */
static int be_child(struct world *w)
{
    struct box box = BOX, call = BOX;
    struct weir_redis_item item = { .key = WEIR_REDIS_TEXT("k"), .limit = w->limit, .cost = 1 };
    struct weir_redis_request request = { .items = &item, .n = 1, .timeout = 60 * WEIR_SECOND };

    alarm(60);
    weir_redis_decide(w->redis, WEIR_REDIS_TAKE, &request, decided, &box);
    submit(w, &call, "INCR counter");
    if (box.came != 1 || box.result.outcome != WEIR_REDIS_UNDONE || call.came != 1 ||
        call.outcome != WEIR_REDIS_UNDONE || !strstr(call.text, "child of fork"))
        return 1;
    if (weir_redis_take(w->redis, &request, &box.result) != WEIR_REDIS_UNDONE)
        return 2;
    weir_redis_destroy(w->redis);
    return 0;
}

TEST_WITH(test_D1_a_child_of_fork_gets_an_answer, start_world, end_world)
{
    struct world *w = *state;
    int status = -1;

    ask(w, true, WEIR_REDIS_TAKE, 1, 0); /* it is connected */
    pid_t child = fork();
    if (child == 0)
        _exit(be_child(w));
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_int_equal(ask(w, true, WEIR_REDIS_PEEK, 0, 0).decisions[0].remaining, 9);
}

RACE_WITH(test_D1_the_end_answers_all_callbacks, start_world, end_world)
{
    struct world *w = *state;
    struct box box = BOX;
    struct weir_redis_item item = { .key = WEIR_REDIS_TEXT("k"), .limit = w->limit, .cost = 1 };
    struct weir_redis_request request = { .items = &item, .n = 1, .timeout = 60 * WEIR_SECOND };

    kill(w->server.pid, SIGSTOP);
    for (int i = 0; i < 20; i++)
        weir_redis_decide(w->redis, WEIR_REDIS_TAKE, &request, decided, &box);
    weir_redis_destroy(w->redis);
    w->redis = NULL;
    kill(w->server.pid, SIGCONT);
    assert_int_equal(box.came, 20);
    assert_int_not_equal(box.result.outcome, WEIR_REDIS_ANSWERED);
}

/* Asks again, until it has had twenty answers. */
struct insistent {
    struct box box;
    struct weir_redis *redis;
    struct weir_redis_request request;
};

static void ask_again(void *context, const struct weir_redis_result *result)
{
    struct insistent *i = context;

    decided(&i->box, result);
    if (i->box.came < 20)
        weir_redis_decide(i->redis, WEIR_REDIS_TAKE, &i->request, ask_again, i);
}

RACE_WITH(test_D1_the_end_answers_callbacks_that_ask_again, start_world, end_world)
{
    struct world *w = *state;
    struct weir_redis_item item = { .key = WEIR_REDIS_TEXT("k"), .limit = w->limit, .cost = 1 };
    struct insistent i = { BOX, w->redis, { .items = &item, .n = 1, .timeout = 60 * WEIR_SECOND } };

    ask(w, true, WEIR_REDIS_PEEK, 0, 0); /* it is connected */
    kill(w->server.pid, SIGSTOP);
    weir_redis_decide(w->redis, WEIR_REDIS_TAKE, &i.request, ask_again, &i);
    weir_redis_destroy(w->redis);
    w->redis = NULL;
    kill(w->server.pid, SIGCONT);
    assert_int_equal(i.box.came, 20);
    assert_int_equal(i.box.result.outcome, WEIR_REDIS_UNDONE);
}
