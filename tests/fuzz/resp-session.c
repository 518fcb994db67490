/* resp-session.c -- any bytes as a session of RESP with a whole server behind it: no crash, and
 * answers that a client can read.
 *
 *   session.h says how the input is cut, and who comes;
 *   all that is answered is RESP, and there is one reply to each command, whatever came before it;
 *   what is no RESP is answered once, and ends it; (the commands that subscribe answer once for
 *   each name, outside of transactions;) what the operator's commands answer is JSON; all that
 *   subscribers are told is RESP too.
 */
#include "fuzz/fuzz.h"

#include "resp-reply.h"
#include "server/serve/resp/resp.h"
#include "session.h"

struct replies {
    const char *at, *end;
};

/* A whole value, with all that is in it; *out is its head. */
static void next_reply(struct replies *r, struct resp_reply *out)
{
    struct resp_reply inner, *value = out;

    for (int64_t left = 1; left > 0; left--) {
        ptrdiff_t took = resp_reply_read(r->at, (size_t)(r->end - r->at), value);
        check(took > 0);
        r->at += took;
        if (strchr("*%~>", value->kind) && value->integer > 0)
            left += value->kind == '%' ? 2 * value->integer : value->integer;
        value = &inner;
    }
}

static size_t count_replies(struct replies *r)
{
    struct resp_reply value;
    size_t n = 0;

    for (; r->at < r->end; n++)
        next_reply(r, &value);
    return n;
}

static bool answers_often(struct weir__text name)
{
    return weir__resp_is(name, "SUBSCRIBE") || weir__resp_is(name, "PSUBSCRIBE") ||
           weir__resp_is(name, "UNSUBSCRIBE") || weir__resp_is(name, "PUNSUBSCRIBE");
}

static void check_reply(struct replies *r, struct weir__text name)
{
    struct resp_reply value;

    next_reply(r, &value);
    const struct weir__verb *verb = weir__verb_by_command(name.bytes, name.len);
    if (verb && verb->how == WEIR__VERB_AWAY && value.kind == '$')
        check_json(value.bytes, value.len);
}

/* The commands once more, each with its reply; what ended the connection is answered by an error,
 * the last one. */
static void check_replies(const struct world *w, const char *bytes, size_t len, struct replies r)
{
    static struct weir__text args[WEIR__RESP_ARGS];
    const struct weir__resp_limits limits = { WEIR__RESP_ARGS, REQUEST_MAX };
    const char *what;
    size_t n, last = w->conn.lingers ? 1 : 0,
              left = count_replies(&(struct replies){ r.at, r.end });
    ptrdiff_t took;
    bool often = false;

    for (size_t at = 0; at < len && !(last && (often || left == last)); at += (size_t)took) {
        took = weir__resp_command(bytes + at, len - at, &limits, args, &n, &what);
        check(took > 0);
        if (n == 0)
            continue;
        check(left-- > 0);
        often = often || answers_often(args[0]);
        if (!often)
            check_reply(&r, args[0]);
    }
    check(often || left == last);
    if (!often && last)
        check(*r.at == '-');
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct weir__buffer told = { 0 };

    if (size < 2 || size > INPUT_MAX)
        return 0;
    struct world *w = begin_session(&weir__resp, data[0]);
    char *bytes = copy_of((const char *)data + 1, size - 1);
    size_t used = feed_session(w, bytes, size - 1, data[0], &told);
    check_replies(w, bytes, used,
                  (struct replies){ w->answer.bytes, w->answer.bytes + w->answer.len });
    if (told.len > 0)
        count_replies(&(struct replies){ told.bytes, told.bytes + told.len });
    weir__buffer_free(&told);
    end_session(w, (const char *)data, size);
    free(bytes);
    return 0;
}
