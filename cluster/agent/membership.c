/* membership.c -- the host as a member of its fleet: beats, and the part that their answers
 * grant. */
#include <stdio.h>
#include <string.h>

#include "base/base.h"
#include "cluster/agent/agent.h"

void weir__beats_begin(struct weir_fleet *f, int64_t weight)
{
    f->member = (struct weir__member){ .beat = WEIR__MEMBER_BEAT,
                                       .weight = weight > 0 ? weight : 1,
                                       .want = WEIR__PART_ONE };
    f->members_script = weir__redis_script(weir__lua_member_shares, weir__lua_member_shares_len);
}

/* Sequence numbers go on beyond those of the process before: they are the time. */
void weir__beats_take_over(struct weir_fleet *f)
{
    int64_t us = weir__clock_real() / WEIR_MICROSECOND;

    f->member.seq = us > f->member.seq ? us : f->member.seq;
}

static void step(struct weir_fleet *f, const struct weir__member_event *event, weir_time now);

/* Beats in vain, one after another: not those of a process that was the agent a moment ago. */
#define OVERTAKEN 15

/* Two hosts of one name are one member: one of them hears nothing of parts, and both may use all of
 * that member's. */
static void note_name(struct weir_fleet *f, const struct weir__member_answer *a)
{
    f->overtaken = a->offer < 0 ? f->overtaken + 1 : 0;
    if (f->overtaken < OVERTAKEN)
        return;
    f->overtaken = OVERTAKEN;
    snprintf(f->info.why, sizeof(f->info.why),
             "another host is in the fleet under the name %s (or this one's clock was set back)",
             f->node);
}

/* A part of 0 is none yet: others have to give way first, or Redis has just come back.  The last
 * one is the better guess for a host that is left alone meanwhile; for a new one, an equal part of
 * those that are there by now. */
static void note_part(struct weir_fleet *f, const struct weir__member_answer *a)
{
    pthread_mutex_lock(&f->mutex);
    f->info.connected = true;
    f->info.learning = a->learning;
    f->info.members = a->members;
    f->info.why[0] = '\0';
    f->info.draws_refused = false;
    note_name(f, a);
    weir__refusal_tell(f);
    if (a->offer > 0)
        f->info.part = a->offer;
    else if (f->guessed && a->members > 0)
        f->info.part = WEIR__PART_ONE / a->members;
    f->guessed = f->guessed && a->offer <= 0;
    f->unheard = false;
    pthread_mutex_unlock(&f->mutex);
}

static void note_silence(struct weir_fleet *f, const char *why, size_t len)
{
    pthread_mutex_lock(&f->mutex);
    f->info.connected = false;
    snprintf(f->info.why, sizeof(f->info.why), "%.*s", (int)len, why);
    pthread_mutex_unlock(&f->mutex);
}

static void set_alone(struct weir_fleet *f, weir_time until, weir_time now)
{
    for (uint32_t i = 0; i < WEIR__FLEET_SHARDS_MAX; i++)
        if (f->shards >> i & 1)
            weir__fleet_stay_alone(f->fleet, i, until, now);
}

void weir__beats_stay_alone(struct weir_fleet *f, weir_time now)
{
    set_alone(f, now + 2 * WEIR__MEMBER_BEAT, now);
}

/* Draws that wait for their next try need not. */
static void come_back(struct weir_fleet *f, weir_time now)
{
    struct weir__fleet_key *k;
    size_t at = 0;

    set_alone(f, 0, now);
    while ((k = weir__fleet_key_next(f->fleet, &at)) != NULL)
        weir__fleet_lost(f->fleet, k, k->id, false, now);
}

/* After a silence all hosts go on alone until Redis has learnt who there is: those that draw while
 * others still go by their shares would be too many together. */
static void note_answer(struct weir_fleet *f, const struct weir__member_answer *a, weir_time mono)
{
    weir_time now = weir__agent_time(f);
    bool was_away = f->hearing.away;

    weir__hearing_answer(&f->hearing, a->learning, mono);
    if (f->hearing.away)
        weir__beats_stay_alone(f, now);
    else if (was_away)
        come_back(f, now);
}

static void answered(struct weir__redis_ask *ask, const struct weir__redis_answer *answer)
{
    struct weir_fleet *f = ask->context;
    struct weir__member_event event = { .kind = WEIR__MEMBER_FAILED };
    struct weir__text why = { "", 0 };
    weir_time now = weir__redis_client_now(f->client);

    if (answer->outcome != WEIR__REDIS_ANSWERED) {
        note_silence(f, answer->why, strlen(answer->why));
    } else if (weir__member_reply(&event.answer, answer->reply, &why)) {
        event.kind = WEIR__MEMBER_ANSWER;
        note_part(f, &event.answer);
        note_answer(f, &event.answer, now);
    } else {
        note_silence(f, why.bytes, why.len);
    }
    weir__notes_heard(f, event.kind == WEIR__MEMBER_ANSWER, event.answer.note);
    weir__redis_ask_free(ask);
    step(f, &event, now);
}

/* The part that it could use, if it were alone.  In a table of several processes nobody sees all
 * asks, and a host that is alone hears of few. */
static int64_t wanted(struct weir_fleet *f, weir_time now)
{
    int64_t asked = weir__fleet_asked(f->fleet);

    return f->shared || f->hearing.away ? WEIR__PART_ONE : weir__fleet_want(&f->want, asked, now);
}

static void step(struct weir_fleet *f, const struct weir__member_event *event, weir_time now)
{
    if (now >= f->member.due)
        f->member.want = wanted(f, now);
    struct weir__member_send send = weir__member_step(&f->member, event, now);
    struct weir_key fleet = { f->name, strlen(f->name) };

    if (send.verb == WEIR__MEMBER_NOTHING)
        return;
    f->beat = (struct weir__redis_ask){ .script = &f->members_script,
                                        .n_words = WEIR__MEMBER_WORDS,
                                        .slot = weir__notes_slot(f),
                                        .deadline = now + send.timeout,
                                        .repeatable = true,
                                        .done = answered,
                                        .context = f };
    weir__member_words(&f->member, &send, fleet, f->node, &f->beat.words);
    f->stirred = true;
    weir__redis_client_ask(f->client, &f->beat, now);
}

weir_time weir__beats_turn(struct weir_fleet *f, weir_time now)
{
    step(f, &(struct weir__member_event){ .kind = WEIR__MEMBER_TIME }, now);
    return f->member.asking || f->member.left ? WEIR_NEVER : f->member.due;
}

void weir__beats_leave(struct weir_fleet *f, weir_time now)
{
    step(f, &(struct weir__member_event){ .kind = WEIR__MEMBER_LEAVE }, now);
}

bool weir__beats_over(const struct weir_fleet *f)
{
    return f->member.left && !f->member.asking;
}
