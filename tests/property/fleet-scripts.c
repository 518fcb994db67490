/* fleet-scripts.c -- the scripts of cluster/fleet in a redis-server answer what their plain models
 * answer, which the simulations use.
 *
 *     property-fleet-scripts SEED ROUNDS
 *
 * By a clock of the test, which runs, jumps ahead and now and then steps back.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "fleet-lock-model.h"
#include "member-shares-model.h"
#include "fleet-notes-model.h"
#include "rounds.h"
#include "vectors/runner/redis-server.h"
#include "vectors/runner/resp-client.h"
#include "wire/resp-reply.h"

#define STEPS 150

static struct redis_server server;
static struct weir__buffer out, in;
static int step;
static int64_t now;    /* us */
static int server_run; /* 1 to 9: which server it is */

static void stop(const char *what)
{
    fprintf(stderr, "property-fleet-scripts: seed %" PRIu64 ", step %d: %s\n", seed_of_round, step,
            what);
    redis_server_stop(&server);
    exit(1);
}

static void replace(struct weir__buffer *text, const char *what, const char *by)
{
    char *found = text->bytes ? strstr(text->bytes, what) : NULL;
    struct weir__buffer made = { 0 };

    if (!found)
        return;
    weir__buffer_add(&made, text->bytes, (size_t)(found - text->bytes));
    weir__buffer_text(&made, by);
    weir__buffer_add(&made, found + strlen(what), strlen(found + strlen(what)) + 1);
    weir__buffer_free(text);
    *text = made;
}

/* The script with its clock and its server replaced: three more words say what they are. */
static void load(const char *text, char sha[41])
{
    struct weir__buffer timed = { 0 };
    struct resp_answer answer;
    struct weir_error error = { 0 };

    weir__buffer_add(&timed, text, strlen(text) + 1);
    replace(&timed, "redis.call('TIME')", "{ARGV[#ARGV - 1], ARGV[#ARGV]}");
    replace(&timed, "redis.pcall('INFO', 'server')", "('run_id:' .. ARGV[#ARGV - 2])");
    replace(&timed, ", #ARGV, 5 do", ", #ARGV - 3, 5 do");
    replace(&timed, "redis.call('PEXPIRE', key, ", "tostring("); /* by Redis's own clock */
    if (resp_client_ask(server.client, (const char *const[]){ "SCRIPT", "LOAD", timed.bytes, NULL },
                        &answer, &error) != WEIR_OK)
        stop(error.text);
    memcpy(sha, answer.text, 40);
    sha[40] = 0;
    weir__buffer_free(&timed);
}

static struct weir__text run(const char *sha, const struct weir__buffer *words, size_t n)
{
    struct weir_error error = { 0 };
    char seconds[24], micros[24];

    int a = snprintf(seconds, sizeof(seconds), "%" PRId64, now / 1000000);
    int b = snprintf(micros, sizeof(micros), "%" PRId64, now % 1000000);
    out.len = 0;
    weir__buffer_format(&out, "*%zu\r\n$7\r\nEVALSHA\r\n$40\r\n%s\r\n", n + 5, sha);
    weir__buffer_add(&out, words->bytes, words->len);
    weir__buffer_format(&out, "$1\r\n%d\r\n$%d\r\n%s\r\n$%d\r\n%s\r\n", server_run, a, seconds, b,
                        micros);
    if (resp_client_raw(server.client, &out, &in, &error) != WEIR_OK)
        stop(error.text);
    return (struct weir__text){ in.bytes, in.len };
}

static void pass_time(void)
{
    int64_t kind = between(0, 19);

    now += kind == 0   ? between(-5000000, -1)
           : kind == 1 ? between(0, 10000000)
           : kind < 6  ? between(0, 1500000)
           : kind == 6 ? 0
                       : between(1, 200000);
}

/* ----------------------------------------------------------------- locks ----
 */

static struct weir__lock_ask invent_ask(const struct model_lock *m, const char *name)
{
    static const enum weir__lock_verb verbs[] = {
        WEIR__LOCK_TAKE, WEIR__LOCK_WAIT, WEIR__LOCK_WAIT, WEIR__LOCK_WAIT, WEIR__LOCK_KEEP,
        WEIR__LOCK_KEEP, WEIR__LOCK_FREE, WEIR__LOCK_QUIT, WEIR__LOCK_LOOK
    };
    static const char *const ids[] = { "ann", "bob", "eve", "joe", "kim" };
    static const char *const asks[] = { "", "", "first", "second" };
    const char *own = asks[between(0, 3)];
    enum weir__lock_verb verb = one_in(30) ? WEIR__LOCK_DROP : verbs[between(0, 8)];
    bool as_it_had = verb == WEIR__LOCK_KEEP && one_in(3);

    return (struct weir__lock_ask){
        .verb = verb,
        .name = { name, strlen(name) },
        .id = m->holder[0] && one_in(2) ? m->holder : ids[between(0, 4)],
        .life = as_it_had ? 0 : between(10, 3000) * WEIR_MILLISECOND,
        .token = one_in(8) ? m->token - 1 : m->token,
        .ask = { own, strlen(own) },
    };
}

static void compare(const struct weir__lock_reply *r, const struct model_answer *a)
{
    char what[200];

    if (r->held == a->held && r->token == a->token && r->place == a->place &&
        r->waiters == a->waiters && r->left == a->left * WEIR_MICROSECOND &&
        r->holder.len == strlen(a->holder) &&
        memcmp(r->holder.bytes, a->holder, r->holder.len) == 0)
        return;
    snprintf(what, sizeof(what),
             "lock: Redis %d, token %" PRId64 ", left %" PRId64 ", place %" PRId64 " of %" PRId64
             "; model %d, %" PRId64 ", %" PRId64 ", %" PRId64 " of %" PRId64,
             r->held, r->token, r->left / 1000, r->place, r->waiters, a->held, a->token, a->left,
             a->place, a->waiters);
    stop(what);
}

static void walk_lock(const char *sha)
{
    struct model_lock m = { .token = 0 };
    char name[32];

    now = INT64_C(1700000000000000);
    snprintf(name, sizeof(name), "%" PRIu64, seed_of_round);
    for (step = 0; step < STEPS; step++) {
        struct weir__buffer words = { 0 };
        struct weir__lock_ask ask = invent_ask(&m, name);
        char id[24];
        struct weir__lock_reply reply;
        struct weir__text why;
        snprintf(id, sizeof(id), "%s", ask.id);
        ask.id = id;
        pass_time();
        weir__lock_words(&ask, &words);
        if (!weir__lock_reply(&reply, run(sha, &words, WEIR__LOCK_WORDS), &why))
            stop(why.bytes);
        weir__buffer_free(&words);
        struct model_answer a =
            model_ask(&m, ask.verb, id, ask.ask.bytes, ask.life / WEIR_MICROSECOND, ask.token, now);
        compare(&reply, &a);
    }
}

/* --------------------------------------------------------------- members ----
 */

static void compare_beats(const struct weir__member_answer *r, const struct weir__member_answer *m)
{
    char what[200];

    if (r->offer == m->offer && r->members == m->members && r->granted == m->granted &&
        r->learning == m->learning)
        return;
    snprintf(what, sizeof(what),
             "members: Redis offers %" PRId64 ", %" PRId64 " members, granted %" PRId64
             ", %d; model %" PRId64 ", %" PRId64 ", %" PRId64 ", %d",
             r->offer, r->members, r->granted, r->learning, m->offer, m->members, m->granted,
             m->learning);
    stop(what);
}

static void walk_members(const char *sha)
{
    struct model_fleet f = { .n = 0 };
    struct weir__member member = { .beat = between(10, 500) * WEIR_MILLISECOND };
    char name[32], id[8] = "n0";
    int64_t seqs[6] = { 0 };

    snprintf(name, sizeof(name), "%" PRIu64, seed_of_round);
    for (step = 0; step < STEPS; step++) {
        struct weir__buffer words = { 0 };
        int i = int_between(0, 5);
        seqs[i] += one_in(10) ? 0 : 1;
        struct weir__member_send send = { one_in(30) ? WEIR__MEMBER_LEAVES : WEIR__MEMBER_BEATS,
                                          one_in(10) ? seqs[i] - 1 : seqs[i],
                                          one_in(3) ? 0 : between(0, 500000), 0 };
        struct weir__member_answer reply;
        struct weir__text why;
        id[1] = (char)('0' + i);
        member.weight = between(1, 5);
        member.want = one_in(2) ? WEIR__PART_ONE : between(0, WEIR__PART_ONE);
        server_run = one_in(40) ? int_between(1, 9) : server_run;
        now += one_in(15) ? between(-1000, 3 * member.beat / 1000) : between(0, member.beat / 3000);
        weir__member_words(&member, &send, (struct weir_key){ name, strlen(name) }, id, &words);
        if (!weir__member_reply(&reply, run(sha, &words, WEIR__MEMBER_WORDS), &why))
            stop(why.bytes);
        weir__buffer_free(&words);
        struct model_beat b = { .id = id,
                                .leaves = send.verb == WEIR__MEMBER_LEAVES,
                                .seq = send.seq,
                                .weight = member.weight,
                                .want = member.want,
                                .part = send.part,
                                .beat = member.beat / WEIR_MICROSECOND };
        struct weir__member_answer a = model_beat(&f, &b, server_run, now);
        compare_beats(&reply, &a);
    }
}

/* ----------------------------------------------------------------- notes ----
 */

static const int64_t *any_of(const int64_t *numbers, int n)
{
    return &numbers[int_between(0, n - 1)];
}

/* Numbers are those of answers before: of three nodes, which hear now and then. */
static size_t invent_tale(const int64_t heard[3], int64_t begun, const char *name,
                          struct weir__buffer *words)
{
    static const int hows[] = { WEIR__NOTE_NEW, WEIR__NOTE_NEW, WEIR__NOTE_OLD, WEIR__NOTE_NOW };
    size_t n = (size_t)between(0, 3);

    weir__notes_words((struct weir_key){ name, strlen(name) }, one_in(10) ? 1 : begun,
                      *any_of(heard, 3), *any_of(heard, 3), words);
    for (size_t i = 0; i < n; i++) {
        char key = (char)between('a', 'e');
        weir__note_words(&(struct weir__note){ .kind = one_in(5) ? 'r' : 'b',
                                               .rule = { "rule", 4 },
                                               .key = { &key, 1 },
                                               .span = between(10, 100) * WEIR_SECOND / 10,
                                               .strikes = between(0, 3),
                                               .forget = between(0, 5) * WEIR_SECOND,
                                               .how = hows[between(0, 3)] },
                         words);
    }
    return WEIR__NOTES_WORDS(n);
}

static void walk_notes(const char *sha)
{
    struct model_notes m = { .n = 0 };
    int64_t heard[3] = { 0 }, begun = 0;
    char name[32];

    snprintf(name, sizeof(name), "%" PRIu64, seed_of_round);
    for (step = 0; step < STEPS; step++) {
        struct weir__buffer words = { 0 }, answer = { 0 };
        struct weir__notes notes;
        server_run = one_in(40) ? int_between(1, 9) : server_run;
        now += one_in(10) ? between(0, 3000000) : between(0, 100000);
        size_t n = invent_tale(heard, begun, name, &words);
        struct weir__text reply = run(sha, &words, n);
        weir__buffer_add(&words, "", 1);
        struct model_tale tale = model_tale_read(words.bytes, n);
        model_notes_call(&m, &tale, server_run, now, &answer);
        if (reply.len != answer.len || memcmp(reply.bytes, answer.bytes, answer.len) != 0) {
            fprintf(stderr, "Redis:\n%.*s\nmodel:\n%.*s\n", (int)reply.len, reply.bytes,
                    (int)answer.len, answer.bytes);
            stop("notes");
        }
        if (!weir__notes_reply(&notes, reply))
            stop("notes: the answer is not read");
        begun = notes.begun;
        heard[int_between(0, 2)] = notes.heard;
        weir__buffer_free(&words);
        weir__buffer_free(&answer);
    }
}

static char lock_sha[41], members_sha[41], notes_sha[41];

static void walk(void)
{
    server_run = 1;
    walk_lock(lock_sha);
    walk_members(members_sha);
    walk_notes(notes_sha);
}

int main(int argc, char **argv)
{
    struct weir_error error = { 0 };

    if (redis_server_start(&server, NULL, &error) != WEIR_OK)
        stop(error.text);
    load(weir__lua_lock, lock_sha);
    load(weir__lua_member_shares, members_sha);
    load(weir__lua_bans_and_resets, notes_sha);
    uint64_t rounds = play_rounds(argc, argv, 50, walk);
    redis_server_stop(&server);
    weir__buffer_free(&out);
    weir__buffer_free(&in);
    printf("%" PRIu64 " passed, 0 failed\n", rounds);
    return 0;
}
