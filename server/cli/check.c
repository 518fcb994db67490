/* check.c -- `weir check`: asks a running server whether a request may pass, and charges it. */
#include <string.h>

#include "base/base.h"
#include "server/base/complain.h"
#include "server/cli/ask-server.h"

struct options {
    struct weir__ask_server_options remote;
    const char *id;
    int64_t cost;
    weir_time wait;
    bool quiet;
};

static const struct weir__option rows[] = {
    WEIR__COUNT("cost", 'c', cost, 0, "units to take; default 1; 0 only looks"),
    WEIR__TEXT("id", 0, id, "ID", "an ask repeated with the same id is charged once"),
    WEIR__VALUE("wait", 'w', TIME, wait, "TIME", "accept a turn this far ahead; default 0"),
    WEIR__SWITCH("quiet", 'q', quiet, "print nothing; the exit code tells"),
    { 0 },
};

static void print_allowed(const struct weir__document *d)
{
    weir__show(d, "", "allowed[, in {wait_ms:ms}]");
    if (weir__document_find(d, "list"))
        weir__show(d, "", ": on the list {list}");
    else if (weir__document_true(d, "drawn"))
        weir__show(d, "",
                   "; the tightest is {rule}: {remaining} of {limit} drawn for this node, and what "
                   "the fleet has left is not known here");
    else if (weir__document_find(d, "rule"))
        weir__show(d, "", "; the tightest is {rule}[: {limit?}{remaining} of {limit} left]");
    else
        printf(": %s", weir__document_number(d, 0, "applied") > 0 ? "no rule that applies enforces"
                                                                  : "no rule applies");
}

/* The refusal that bans has the reason of the limit; only the detail says more. */
static bool now_banned(const struct weir__document *d)
{
    const char *detail = weir__document_text(d, "detail");

    return detail && strstr(detail, "; now banned") != NULL;
}

static void print_refused(const struct weir__document *d)
{
    const char *reason = weir__document_text(d, "reason");

    if (reason && strcmp(reason, "too-many") == 0)
        weir__show(d, "", "refused by {rule}: more limits apply than can be asked at once");
    else if (!weir__document_find(d, "rule"))
        weir__show(d, "", "refused: on the list {list|deny}");
    else if (weir__document_number(d, -1, "retry_ms") < 0)
        weir__show(d, "", "refused by {rule}, for ever: it asks for more than can pass at once");
    else
        weir__show(d, "",
                   now_banned(d)
                       ? "refused by {rule} ({reason|limited}, now banned); free in {retry_ms:ms}"
                       : "refused by {rule} ({reason|limited}); free in {retry_ms:ms}");
}

/* Rules that are meant to count elsewhere too: one line for each reason. */
static void doubt_fleet(const struct weir__document *d)
{
    static const struct {
        const char *fleet, *one, *several;
    } reasons[] = {
        { "none",
          "warning: rule %s is across the fleet, and the server is in none: it counts on that host "
          "alone",
          "warning: rule %s and %d more are across the fleet, and the server is in none: they "
          "count "
          "on that host alone" },
        { "share",
          "rule %s goes by this node's share of the limit: the fleet's Redis does not answer, or "
          "is just back",
          "rule %s and %d more go by this node's share of the limit: the fleet's Redis does not "
          "answer, or is just back" },
    };
    const char *rule, *first;

    for (size_t k = 0; k < sizeof(reasons) / sizeof(reasons[0]); k++) {
        int n = 0;
        for (int i = 0; (rule = weir__document_text(d, "rules.%d.rule", i)) != NULL; i++) {
            const char *fleet = weir__document_text(d, "rules.%d.fleet", i);
            if (fleet && strcmp(fleet, reasons[k].fleet) == 0 && n++ == 0)
                first = rule;
        }
        if (n == 1)
            weir__complain("check", reasons[k].one, first);
        else if (n > 1)
            weir__complain("check", reasons[k].several, first, n - 1);
    }
}

/* An attribute that no rule looks at and an ip that is no address change nothing: most are slips.
 * Only an operator's token may ask about the first. */
static void doubt(const struct weir__call *call, struct weir__ask_server *r)
{
    const char *unused;

    weir__doubt_addresses(call);
    r->silent = true;
    if (!weir__ask_server_attributes(r) || !weir__ask_server_for(r, "POST /v1/explain", "unused"))
        return;
    doubt_fleet(&r->document);
    if (weir__document_text(&r->document, "rules.0.rule") == NULL) {
        weir__complain("check", "warning: the server has no rules");
        return;
    }
    for (int i = 0; (unused = weir__document_text(&r->document, "unused.%d", i)) != NULL; i++) {
        const char *meant = weir__document_text(&r->document, "meant.%d", i);
        weir__complain("check", "warning: no rule looks at %s%s%s%s",
                       weir__quote(unused, strlen(unused)).text, meant ? "; did you mean '" : "",
                       meant ? meant : "", meant ? "'?" : "");
    }
}

/* Only a ruling says whether it is allowed; an error does not. */
static int ask(const struct weir__call *call, struct weir__ask_server *r)
{
    const struct options *o = call->options;
    const struct weir__document *d = &r->document;

    if (!weir__ask_server_attributes(r))
        return WEIR__EXIT_WRONG;
    weir__buffer_member_number(&r->body, "cost", o->cost);
    if (o->wait > 0)
        weir__buffer_member_number(&r->body, "wait_ms", o->wait / WEIR_MILLISECOND);
    if (o->id)
        weir__buffer_member(&r->body, "id", o->id);
    if (!weir__ask_server_call(r, "POST /v1/check"))
        return WEIR__EXIT_WRONG;
    if (!weir__document_find(d, "allowed"))
        return weir__ask_server_complain(r);
    bool allowed = weir__document_true(d, "allowed");
    if (!o->quiet && o->remote.json) {
        weir__ask_server_print(r);
    } else if (!o->quiet) {
        (allowed ? print_allowed : print_refused)(d);
        weir__show(d, "", "[; {shadow}, in shadow, would refuse]\n");
        doubt(call, r);
    }
    return allowed ? WEIR__EXIT_OK : WEIR__EXIT_NO;
}

const struct weir__command weir__cmd_check = {
    .name = "check",
    .summary = "ask a server whether a request may pass",
    .arguments = "[options] NAME=VALUE...",
    .help = "The server's rules decide, and charge the request. weir explain says why, and "
            "charges nothing.\n"
            "\n"
            "  weir check ip=192.0.2.7 uri=/login method=POST\n"
            "\n"
            "Exit codes: 0 allowed, 1 refused, 2 wrong use or no server.",
    WEIR__ASK_SERVER(rows, .cost = 1),
    .words_min = 1,
    .words_max = WEIR__ANY_WORDS,
    .ask = ask,
};
