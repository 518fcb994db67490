/* wrong.c -- every case of tests/rules/wrong.txt: one text, one problem, in its place. */
#include "unit/test.h"

#include <stdio.h>

#include "unit/case-lines.h"
#include "unit/reading.h"

/* What stands before and after a case's text, and where the text begins. */
static const struct around {
    const char *name, *before, *after;
    int line, column;
} arounds[] = {
    { "file", "", "", 0, 0 },
    { "top", "version: 1\n", "\n", 1, 0 },
    { "rule",
      "version: 1\nlists: { vips: { account: [a] } }\nrules:\n  - name: r\n    limit: 1/s\n    ",
      "\n", 5, 4 },
    { "guard",
      "version: 1\nlists: { vips: { account: [a] } }\nguards:\n  - name: g\n    degrade: 1\n    ",
      "\n", 5, 4 },
};

/* \n, \r, \t, \\ and \xHH stand for bytes. */
static size_t unescape(char *text)
{
    char *to = text;

    for (const char *at = text; *at; at++) {
        unsigned byte = (unsigned char)*at;
        if (at[0] == '\\' && at[1] == 'x' && sscanf(at + 2, "%2x", &byte) == 1)
            at += 3;
        else if (at[0] == '\\' && at[1])
            byte = *++at == 'n' ? '\n' : *at == 'r' ? '\r' : *at == 't' ? '\t' : (unsigned char)*at;
        *to++ = (char)byte;
    }
    *to = '\0';
    return (size_t)(to - text);
}

static bool is_told(const char *place, char *text, const char *part)
{
    static struct told told;
    struct weir_error error = { 0 };
    struct around around = arounds[0];
    char whole[4096];
    int line = 1, column = 0;
    size_t len = unescape(text);

    for (size_t i = 0; i < COUNT_OF(arounds); i++) {
        if (strncmp(place, arounds[i].name, strlen(arounds[i].name)) == 0)
            around = arounds[i];
    }
    place += strlen(around.name) + 1;
    if (sscanf(place, "%d:%d", &line, &column) == 1)
        column = line, line = 1;
    size_t before = strlen(around.before), after = strlen(around.after);
    assert_true(before + len + after < sizeof(whole));
    memcpy(whole, around.before, before);
    memcpy(whole + before, text, len);
    memcpy(whole + before + len, around.after, after + 1);
    told = read_bad_bytes(whole, before + len + after, NULL, &error);
    const struct weir_problem *p = &told.problems[0];
    if (told.n == 1 && p->line == around.line + line && p->column == around.column + column &&
        strstr(p->text, part))
        return true;
    printf("%s\n%zu problems, the first %d:%d: %s\nnot %s: %s\n", whole, told.n, p->line, p->column,
           p->text, place, part);
    return false;
}

TEST(test_R6_wrong_files)
{
    assert_cases(WEIR_TESTS "/rules/wrong.txt", 200, is_told);
}
