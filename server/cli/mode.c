/* mode.c -- `weir mode`: the switch by hand, of a running server: what each rule and guard is
 * told to do, and has done. */
#include <stdio.h>
#include <string.h>

#include "base/base.h"
#include "server/base/options.h"
#include "server/cli/remote.h"
#include "server/base/text.h"

struct options {
    struct weir__remote_options remote;
    const char *rule;
};

const struct weir__option weir__cmd_mode_options[] = {
    { "rule", 'r', WEIR__OPTION_TEXT, offsetof(struct options, rule), 0, "NAME",
      "this rule or guard; default all of them" },
    WEIR__REMOTE_JSON(struct options) WEIR__REMOTE_ROWS(struct options){ 0 },
};

/* ---------------------------------------------------------------- showing ---- */

/* "shadow (by hand; written: enforce)" */
static void print_mode(const struct weir__document *d, const char *at)
{
    const char *now = weir__document_text(d, "%sin_force", at),
               *by_hand = weir__document_text(d, "%sby_hand", at),
               *written = weir__document_text(d, "%sas_written", at);
    char words[96];

    if (by_hand)
        snprintf(words, sizeof(words), "%s (by hand; written: %s)", now ? now : "?",
                 written ? written : "?");
    else if (now && written && strcmp(now, written) != 0)
        snprintf(words, sizeof(words), "%s (as all are; written: %s)", now, written);
    else
        snprintf(words, sizeof(words), "%s", now ? now : "?");
    weir__print_padded(words, 40);
}

static void print_one(const struct weir__document *d, const char *all, const char *what, int i)
{
    static const char *const counts[][2] = { { "allowed", "allowed" },
                                             { "refused", "refused" },
                                             { "banned", "by bans" },
                                             { "shadow_refused", "refused in shadow" } };
    const char *name = weir__document_text(d, "%s.%d.%s", all, i, what), *separator = "";
    char at[32];

    snprintf(at, sizeof(at), "%s.%d.", all, i);
    weir__print_padded(name, 24);
    putchar(' ');
    print_mode(d, at);
    for (size_t k = 0; k < 4; k++) {
        int64_t n = weir__document_number(d, 0, "%s%s", at, counts[k][0]);
        if (n == 0 && (k > 1 || weir__document_find(d, "%s%s", at, counts[k][0]) == NULL))
            continue;
        printf("%s%lld %s", separator, (long long)n, counts[k][1]);
        separator = ", ";
    }
    putchar('\n');
}

static int show(struct weir__remote *r)
{
    if (!weir__remote_ask_for(r, "GET", "/v1/modes", NULL, "in_force"))
        return WEIR__EXIT_WRONG;
    if (r->options.json) {
        weir__remote_print(r);
        return WEIR__EXIT_OK;
    }
    printf("%-24s ", "all rules");
    print_mode(&r->document, "");
    putchar('\n');
    for (int i = 0; weir__document_find(&r->document, "rules.%d.rule", i); i++)
        print_one(&r->document, "rules", "rule", i);
    for (int i = 0; weir__document_find(&r->document, "guards.%d.guard", i); i++)
        print_one(&r->document, "guards", "guard", i);
    return WEIR__EXIT_OK;
}

/* -------------------------------------------------------------- switching ---- */

static int count_switched(const struct weir__document *d, const char *all, const char *what)
{
    int n = 0;

    for (int i = 0; weir__document_find(d, "%s.%d.%s", all, i, what); i++)
        n += weir__document_find(d, "%s.%d.by_hand", all, i) != NULL;
    return n;
}

/* Those of `all`, of which there are n, and `more` of others. */
static void print_switched(const struct weir__document *d, const char *all, const char *what, int n,
                           bool more)
{
    const char *name, *mode;

    for (int i = 0; (name = weir__document_text(d, "%s.%d.%s", all, i, what)) != NULL; i++) {
        if ((mode = weir__document_text(d, "%s.%d.by_hand", all, i)) == NULL)
            continue;
        weir__print_safely(stdout, name);
        printf(" (");
        weir__print_safely(stdout, mode);
        printf(")%s", --n > 0 || more ? ", " : "");
    }
}

/* as-written ends the switch for all, and a rule's own is another: that those stay is told. */
static void print_still_switched(struct weir__remote *r)
{
    const struct weir__document *d = &r->document;

    if (!weir__remote_ask_for(r, "GET", "/v1/modes", NULL, "in_force"))
        return;
    int rules = count_switched(d, "rules", "rule"), guards = count_switched(d, "guards", "guard"),
        n = rules + guards;
    if (n == 0)
        return;
    printf("%d %s%s%s%s still switched by hand: ", n, rules ? "rule" : "",
           rules && n > 1 ? "s" : "", rules && guards ? " and " : "",
           guards == 0 ? (n > 1 ? " are" : " is")
           : n > 1     ? "guards are"
                       : "guard is");
    print_switched(d, "rules", "rule", rules, guards > 0);
    print_switched(d, "guards", "guard", guards, false);
    puts("; --rule NAME as-written puts one back");
}

static int switch_to(struct weir__remote *r, const struct options *o, const char *mode)
{
    struct weir__buffer body = { 0 };

    weir__buffer_text(&body, "{");
    weir__buffer_member(&body, "mode", mode);
    if (o->rule)
        weir__buffer_member(&body, "rule", o->rule);
    weir__buffer_text(&body, "}");
    bool done = weir__remote_ask_for(r, "PUT", "/v1/modes", &body, "in_force");
    weir__buffer_free(&body);
    if (!done)
        return WEIR__EXIT_WRONG;
    if (r->options.json) {
        weir__remote_print(r);
        return WEIR__EXIT_OK;
    }
    const char *now = weir__document_text(&r->document, "in_force");
    weir__print_safely(stdout, o->rule ? o->rule : "all rules");
    printf(": ");
    weir__print_safely(stdout, now ? now : mode);
    putchar('\n');
    if (!o->rule && strcmp(mode, weir_mode_name(WEIR_AS_WRITTEN)) == 0)
        print_still_switched(r);
    return WEIR__EXIT_OK;
}

static bool is_mode(const char *word)
{
    const char *modes[WEIR_OFF + 2] = { 0 };
    char all[128];
    size_t n = 0;

    for (int m = 0; m <= WEIR_OFF; m++) {
        modes[m] = weir_mode_name((enum weir_mode)m);
        if (strcmp(modes[m], word) == 0)
            return true;
        n += (size_t)snprintf(all + n, sizeof(all) - n, "%s%s", m ? ", " : "", modes[m]);
    }
    const char *near = weir__nearest(word, strlen(word), modes, WEIR__TO_NULL);
    weir__complain("mode", "there is no mode '%s'; %s%s%s", word,
                   near ? "did you mean " : "the modes are ", near ? near : all, near ? "?" : "");
    return false;
}

int weir__cmd_mode(const struct weir__command *self, int argc, char **argv)
{
    struct options o = { 0 };
    struct weir__remote r;
    int n, code = weir__options_parse(self, argc, argv, &o, &n);

    if (code != WEIR__GO_ON)
        return code;
    if (n > 1 || (n == 0 && o.rule)) {
        weir__complain(self->name, "%s; usage: weir %s %s",
                       n > 1 ? "one mode at a time" : "which mode", self->name, self->arguments);
        return WEIR__EXIT_WRONG;
    }
    if ((n == 1 && !is_mode(argv[0])) || !weir__remote_open(&r, self, &o.remote))
        return WEIR__EXIT_WRONG;
    code = n == 1 ? switch_to(&r, &o, argv[0]) : show(&r);
    weir__remote_close(&r);
    return code;
}
