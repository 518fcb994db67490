/* answer-templates.c -- templates for a server's answers in words, and text made safe for a
 * terminal.  Each command has its own. */
#include <stdlib.h>
#include <string.h>

#include "server/base/human-numbers.h"
#include "server/base/safe-text.h"
#include "server/cli/ask-server.h"

void weir__print_safely(FILE *to, const char *text)
{
    weir__safe_text(to, WEIR__SAFE_TERMINAL, text ? text : "?");
}

void weir__print_padded(const char *text, int width)
{
    int room = abs(width), len = (int)strnlen(text ? text : "?", (size_t)room);

    printf("%*s", width < 0 ? room - len : 0, "");
    weir__print_safely(stdout, text);
    printf("%*s", width < 0 ? 0 : room - len, "");
}

struct weir__shown_time weir__show_ms(int64_t ms)
{
    struct weir__shown_time words;
    weir_time time;

    if (ms <= 0 || __builtin_mul_overflow(ms, WEIR_MILLISECOND, &time))
        time = ms <= 0 ? 0 : INT64_MAX;
    weir__human_duration(words.text, time);
    return words;
}

/* A value of a template: {name}, {name:how}, {name#noun}, {name|text} or {name?}. */
struct value {
    char name[48], rest[48];
    char kind; /* of the rest; 0: there is none */
};

/* Reads the rest of a brace; returns the place behind it. */
static const char *read_value(const char *at, struct value *out)
{
    size_t len = strcspn(at, "|:#?}"), whole = strcspn(at, "}");

    *out = (struct value){ .kind = at[len] == '}' ? '\0' : at[len] };
    snprintf(out->name, sizeof(out->name), "%.*s", (int)len, at);
    if (out->kind)
        snprintf(out->rest, sizeof(out->rest), "%.*s", (int)(whole - len - 1), at + len + 1);
    return at + whole + 1;
}

static void print_counted(const char *text, const char *noun)
{
    size_t len = strlen(noun);

    weir__print_safely(stdout, text ? text : "0");
    if (text && strcmp(text, "1") == 0)
        printf(" %s", noun);
    else if (len > 1 && noun[len - 1] == 'y' && !strchr("aeou", noun[len - 2]))
        printf(" %.*sies", (int)len - 1, noun);
    else
        printf(" %ss", noun);
}

static void print_value(const struct weir__document *d, const char *at, const struct value *v)
{
    const char *text = weir__document_text(d, "%s%s", at, v->name);

    if (v->kind == '#')
        print_counted(text, v->rest);
    else if (v->kind == ':' && strcmp(v->rest, "ms") == 0)
        printf("%s", weir__show_ms(weir__document_number(d, 0, "%s%s", at, v->name)).text);
    else if (v->kind == ':')
        weir__print_padded(text, atoi(v->rest));
    else if (v->kind != '?')
        weir__print_safely(stdout, text || v->kind != '|' ? text : v->rest);
}

/* Whether the first value of a bracket is there. */
static bool is_wanted(const struct weir__document *d, const char *at, const char *bracket)
{
    struct value v;

    read_value(strchr(bracket, '{') + 1, &v);
    const struct weir__scalar *s = weir__document_find(d, "%s%s", at, v.name);
    return s && (s->kind == WEIR__JSON_STRING ||
                 (strcmp(s->text, "0") != 0 && strcmp(s->text, "false") != 0));
}

void weir__show(const struct weir__document *d, const char *at, const char *template)
{
    struct value v;

    for (const char *c = template; *c;) {
        if (*c == '{') {
            c = read_value(c + 1, &v);
            print_value(d, at, &v);
        } else if (*c == '[' && !is_wanted(d, at, c)) {
            c = strchr(c, ']') + 1;
        } else {
            if (*c != '[' && *c != ']')
                putchar(*c);
            c++;
        }
    }
}

int weir__show_each(const struct weir__document *d, const char *array, const char *member,
                    const char *template)
{
    char at[64];
    int i = 0;

    for (; weir__document_find(d, "%s.%d.%s", array, i, member); i++) {
        snprintf(at, sizeof(at), "%s.%d.", array, i);
        weir__show(d, at, template);
    }
    return i;
}
