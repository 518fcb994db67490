/* rules-doubts.c -- every case of tests/rules/doubts.txt: one text, and one warning or none. */
#include "unit/test.h"

#include <stdio.h>

#include "server/describe/rules-doubts.h"
#include "unit/case-lines.h"
#include "unit/limit-options.h"
#include "unit/reading.h"

static const struct around {
    const char *name, *before;
    bool indented;
} arounds[] = {
    { "top", "version: 1\n", false },
    { "rule", "version: 1\nrules:\n  - name: r\n    ", true },
    { "guard",
      "version: 1\nrules: [{ name: r, key: \"{ip}\", limit: 5/1s }]\nguards:\n  - name: g\n    ",
      true },
};

/* What stands before the text and the text, with a line for each \n. */
static void write_whole(char *out, size_t size, const char *place, const char *text)
{
    const struct around *a = &arounds[0];
    FILE *to = fmemopen(out, size, "w");

    assert_non_null(to);
    while (strcmp(a->name, place) != 0)
        assert_true(++a < arounds + COUNT_OF(arounds));
    fputs(a->before, to);
    for (; *text; text++) {
        if (text[0] != '\\') {
            fputc(*text, to);
        } else if (*++text == 'n') {
            fputs(a->indented ? "\n    " : "\n", to);
        } else {
            fprintf(to, "\\%c", *++text);
        }
    }
    fputc('\n', to);
    fclose(to);
}

static bool is_doubted(const char *place, char *text, const char *part)
{
    static struct told told;
    char whole[2048];

    told.n = 0;
    write_whole(whole, sizeof(whole), place, text);
    struct weir__draft *draft = read_good(whole);
    weir__rules_doubts(draft, note, &told);
    weir__draft_destroy(draft);
    if (strcmp(part, "-") == 0 ? told.n == 0
                               : told.n == 1 && strstr(told.problems[0].text, part) != NULL)
        return true;
    printf("%s%zu warnings, not: %s\n", whole, told.n, part);
    for (size_t i = 0; i < told.n; i++)
        printf("    %s\n", told.problems[i].text);
    return false;
}

TEST(test_R14_doubts)
{
    assert_cases(WEIR_TESTS "/rules/doubts.txt", 80, is_doubted);
}

/* Of two limits that differ in an option none is the tighter one; but for a burst (0). */
TEST(test_R14_no_option_is_overlooked)
{
    char text[256];

    for (size_t i = 1; i < COUNT_OF(limit_options); i++) {
        snprintf(text, sizeof(text),
                 "rules:\n  - { name: a, key: \"{ip}\", limit: %s }\n"
                 "  - { name: b, key: \"{ip}\", limit: %s }",
                 limit_options[i].without, limit_options[i].with);
        assert_true(is_doubted("top", text, "-"));
    }
}
