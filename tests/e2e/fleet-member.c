/* fleet-member.c -- one node of a fleet, for tests: beats, and prints its part.
 *
 *     fleet-member URL ID BEAT_MS WEIGHT WANT
 *
 * A line for each answer: when it came and until when its part is in force, in ns of the host's
 * clock; the part; whether Redis is learning.  SIGTERM: it leaves the fleet.
 */
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "cluster/fleet/member-shares.h"
#include "server/cli/ask-redis.h"

static volatile sig_atomic_t leaving;

static void leave(int signal)
{
    (void)signal;
    leaving = 1;
}

static struct weir__member_event ask(struct weir__asker *a, const struct weir__member *m,
                                     const struct weir__member_send *send, const char *id)
{
    struct weir__redis_script script =
        weir__redis_script(weir__lua_member_shares, weir__lua_member_shares_len);
    struct weir__redis_ask ask = { .script = &script,
                                   .n_words = WEIR__MEMBER_WORDS,
                                   .slot = weir__redis_slot("{fleet:test}", 12),
                                   .repeatable = true };
    struct weir__member_event event = { .kind = WEIR__MEMBER_FAILED };
    struct weir__text why = { "", 0 };

    weir__member_words(m, send, (struct weir_key){ "test", 4 }, id, &ask.words);
    a->timeout = send->timeout;
    if (weir__asker_ask(a, &ask) &&
        weir__member_reply(&event.answer, (struct weir__text){ a->reply.bytes, a->reply.len },
                           &why))
        event.kind = WEIR__MEMBER_ANSWER;
    else
        fprintf(stderr, "%s: %s%.*s\n", id, a->why, (int)why.len, why.bytes);
    weir__redis_ask_free(&ask);
    return event;
}

static void print(const struct weir__member *m)
{
    weir_time now = weir__clock_monotonic();

    printf("%" PRId64 " %" PRId64 " %" PRId64 " %d\n", now, m->until, weir__member_part(m, now),
           m->learning);
    fflush(stdout);
}

int main(int argc, char **argv)
{
    struct weir__member m = { .weight = 1 };
    struct weir__asker asker;
    struct weir__member_event event = { .kind = WEIR__MEMBER_TIME };

    if (argc != 6 || weir__asker_open(&asker, "fleet-member", argv[1], WEIR_SECOND) != WEIR__GO_ON)
        return 2;
    m.beat = strtoll(argv[3], NULL, 10) * WEIR_MILLISECOND;
    m.weight = strtoll(argv[4], NULL, 10);
    m.want = strtoll(argv[5], NULL, 10);
    signal(SIGTERM, leave);
    for (;;) {
        if (leaving && !m.left)
            event.kind = WEIR__MEMBER_LEAVE;
        struct weir__member_send send = weir__member_step(&m, &event, weir__clock_monotonic());
        print(&m);
        if (send.verb == WEIR__MEMBER_NOTHING && m.left)
            break;
        if (send.verb == WEIR__MEMBER_NOTHING) {
            weir_time span = m.due - weir__clock_monotonic();
            weir__clock_sleep(span > 0 ? span : 0);
            event.kind = WEIR__MEMBER_TIME;
        } else {
            event = ask(&asker, &m, &send, argv[2]);
        }
    }
    weir__asker_close(&asker);
    return 0;
}
