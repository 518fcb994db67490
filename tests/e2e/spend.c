/* spend.c -- for explain.sh: spend TABLE RULES SECONDS TIMES NAME=VALUE... asks the rules that many
 * times at that moment, on a table file that is made if it is not there, and writes how many were
 * allowed.  spend TABLE RULES RULE MODE sets a rule's mode by hand. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "weir-admin.h"

#define ATTRS_MAX 16

static void need(int code, const struct weir_error *error)
{
    if (code == WEIR_OK)
        return;
    fprintf(stderr, "spend: %s\n", error->text);
    exit(2);
}

static size_t ask(struct weir *weir, char **words, int n, weir_time now, long times)
{
    struct weir_attr attrs[ATTRS_MAX];
    size_t used = 0, allowed = 0;

    for (int i = 0; i < n && used < ATTRS_MAX; i++) {
        char *equals = strchr(words[i], '=');
        if (equals == NULL)
            continue;
        *equals = '\0';
        attrs[used++] = (struct weir_attr){ .name = words[i], .value = equals + 1 };
    }
    for (long i = 0; i < times; i++) {
        struct weir_ruling r;
        allowed += weir_check(weir, attrs, used, &(struct weir_ask){ .cost = 1, .now = now }, &r);
    }
    return allowed;
}

static enum weir_mode mode_of(const char *word)
{
    return strcmp(word, "shadow") == 0 ? WEIR_SHADOW
           : strcmp(word, "off") == 0  ? WEIR_OFF
                                       : WEIR_AS_WRITTEN;
}

int main(int argc, char **argv)
{
    struct weir_error error = { 0 };
    struct weir_table *table;
    struct weir_rules *rules;
    struct weir *weir;
    char *end;

    if (argc < 5)
        return 2;
    weir_time now = strtoll(argv[3], &end, 10) * WEIR_SECOND;
    need(weir_table_create(&table, &(struct weir_table_options){ .path = argv[1], .keys = 1000 },
                           &error),
         &error);
    need(weir_create(&weir, &(struct weir_options){ .table = table }, &error), &error);
    need(weir_rules_read(&rules, argv[2], NULL, &error), &error);
    need(weir_use(weir, rules, now, &error), &error);
    if (*end != '\0')
        need(weir_mode_set(weir, argv[3], mode_of(argv[4]), &error), &error);
    else
        printf("%zu\n", ask(weir, argv + 5, argc - 5, now, atol(argv[4])));
    weir_destroy(weir);
    weir_table_destroy(table);
    return 0;
}
