/* check.c -- `weir check`: asks a running server whether a request may pass, and takes what it
 * costs. */
#include <stdio.h>
#include <string.h>

#include "server/base/options.h"
#include "server/cli/remote.h"
#include "server/base/text.h"

struct options {
    struct weir__remote_options remote;
    const char *id;
    int64_t cost;
    weir_time wait;
    bool quiet;
};

const struct weir__option weir__cmd_check_options[] = {
    { "cost", 'c', WEIR__OPTION_COUNT, offsetof(struct options, cost), 0, "N",
      "units to take; default 1; 0 only looks" },
    { "id", 0, WEIR__OPTION_TEXT, offsetof(struct options, id), 0, "ID",
      "the same ask again, with the same id, is charged once" },
    { "wait", 'w', WEIR__OPTION_TIME, offsetof(struct options, wait), 0, "TIME",
      "a turn within this long is good enough; default 0" },
    { "quiet", 'q', WEIR__OPTION_SWITCH, offsetof(struct options, quiet), 0, NULL,
      "print nothing; the exit code says it" },
    WEIR__REMOTE_JSON(struct options) WEIR__REMOTE_ROWS(struct options){ 0 },
};

/* ------------------------------------------------------------------ words ---- */

static void print_name(const struct weir__document *d, const char *member)
{
    const char *name = weir__document_text(d, "%s", member);

    weir__print_safely(stdout, name ? name : "?");
}

static void print_left(const struct weir__document *d)
{
    if (weir__document_find(d, "limit"))
        printf(": %lld of %lld left", (long long)weir__document_number(d, 0, "remaining"),
               (long long)weir__document_number(d, 0, "limit"));
}

static void print_allowed(const struct weir__document *d)
{
    int64_t wait = weir__document_number(d, 0, "wait_ms");

    printf("allowed");
    if (wait > 0)
        printf(", in %s", weir__remote_ms(wait).text);
    if (weir__document_find(d, "list")) {
        printf(": on the list ");
        print_name(d, "list");
    } else if (weir__document_find(d, "rule")) {
        printf("; the tightest is ");
        print_name(d, "rule");
        print_left(d);
    } else {
        printf(": %s", weir__document_number(d, 0, "applied") > 0 ? "no rule that applies enforces"
                                                                  : "no rule applies");
    }
}

static void print_until_free(const char *reason, int64_t retry_ms)
{
    printf(" (");
    weir__print_safely(stdout, reason ? reason : "limited");
    printf("); free in %s", weir__remote_ms(retry_ms).text);
}

static void print_refused(const struct weir__document *d)
{
    const char *reason = weir__document_text(d, "reason");
    int64_t retry = weir__document_number(d, -1, "retry_ms");

    if (!weir__document_find(d, "rule")) {
        printf("refused: on the list %s", weir__document_find(d, "list") ? "" : "deny");
        if (weir__document_find(d, "list"))
            print_name(d, "list");
        return;
    }
    printf("refused by ");
    print_name(d, "rule");
    if (retry < 0)
        printf(", for ever: it asks for more than can pass at once");
    else
        print_until_free(reason, retry);
}

static void print_ruling(const struct weir__document *d, bool allowed)
{
    if (allowed)
        print_allowed(d);
    else
        print_refused(d);
    if (weir__document_find(d, "shadow")) {
        printf("; ");
        print_name(d, "shadow");
        printf(", in shadow, would refuse");
    }
    putchar('\n');
}

/* ---------------------------------------------------------------- command ---- */

static bool write_body(const struct weir__command *self, const struct options *o, char **words,
                       int n, struct weir__buffer *body)
{
    weir__buffer_text(body, "{");
    if (!weir__remote_attributes(self->name, body, words, n))
        return false;
    weir__buffer_member_number(body, "cost", o->cost);
    if (o->wait > 0)
        weir__buffer_member_number(body, "wait_ms", o->wait / WEIR_MILLISECOND);
    if (o->id)
        weir__buffer_member(body, "id", o->id);
    weir__buffer_text(body, "}");
    return true;
}

/* Only a ruling says whether it is allowed; an error does not. */
static int check(struct weir__remote *r, const struct options *o, const struct weir__buffer *body)
{
    if (!weir__remote_call(r, "POST", "/v1/check", body))
        return WEIR__EXIT_WRONG;
    if (!weir__document_find(&r->document, "allowed")) {
        weir__remote_complain(r);
        return WEIR__EXIT_WRONG;
    }
    bool allowed = weir__document_true(&r->document, "allowed");
    if (o->remote.json && !o->quiet)
        weir__remote_print(r);
    else if (!o->quiet)
        print_ruling(&r->document, allowed);
    return allowed ? WEIR__EXIT_OK : WEIR__EXIT_NO;
}

int weir__cmd_check(const struct weir__command *self, int argc, char **argv)
{
    struct options o = { .cost = 1 };
    struct weir__remote r;
    struct weir__buffer body = { 0 };
    int n, code = weir__options_parse(self, argc, argv, &o, &n);

    if (code != WEIR__GO_ON)
        return code;
    code = WEIR__EXIT_WRONG;
    if (n == 0) {
        weir__complain(self->name, "which request? usage: weir %s %s", self->name, self->arguments);
    } else if (write_body(self, &o, argv, n, &body) && weir__remote_open(&r, self, &o.remote)) {
        code = check(&r, &o, &body);
        weir__remote_close(&r);
    }
    weir__buffer_free(&body);
    return code;
}
