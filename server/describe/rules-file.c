/* rules-file.c -- rule files for the commands. */
#include "server/describe/rules-file.h"

#include "server/base/complain.h"

void weir__problem_json(struct weir__buffer *out, const struct weir_problem *p, bool source)
{
    weir__buffer_open(out, NULL, '{');
    weir__buffer_member_number(out, "line", p->line);
    weir__buffer_member_number(out, "column", p->column);
    weir__buffer_member(out, "text", p->text);
    if (source) {
        weir__buffer_member(out, "source", p->source);
        weir__buffer_member_number(out, "caret", p->caret);
    }
    weir__buffer_close(out, "}");
}

void weir__problem_say(void *context, const struct weir_problem *problem)
{
    struct weir__problems *problems = context;
    char text[1024];

    problems->n++;
    if (problems->json) {
        weir__problem_json(problems->json, problem, true);
        return;
    }
    weir_problem_print(text, sizeof(text), problems->name, problem);
    fprintf(problems->out ? problems->out : stderr, "%s\n", text);
}

struct weir_rules *weir__rules_file_read(const char *command, const char *path)
{
    struct weir__problems problems = { .name = path };
    struct weir_rules_options options = { .problem = weir__problem_say, .context = &problems };
    struct weir_rules *rules;
    struct weir_error error;

    if (weir_rules_read(&rules, path, &options, &error) == WEIR_OK)
        return rules;
    if (problems.n == 0)
        weir__complain(command, "%s", error.text);
    return NULL;
}

struct weir__draft *weir__rules_text_read(struct weir__text text, struct weir__problems *said,
                                          struct weir_error *error)
{
    struct weir_rules_options options = { .name = said->name,
                                          .problem = weir__problem_say,
                                          .context = said };
    struct weir__draft *draft = NULL;
    struct weir_rules *rules = NULL;

    if (weir__draft_read(&draft, text.bytes, text.len, &options, error) != WEIR_OK)
        return NULL;
    if (weir_rules_parse(&rules, text.bytes, text.len, &options, error) != WEIR_OK) {
        weir__draft_destroy(draft);
        return NULL;
    }
    weir_rules_destroy(rules);
    return draft;
}
