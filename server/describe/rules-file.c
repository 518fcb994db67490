/* rules-file.c -- rule files for the commands. */
#include "server/describe/rules-file.h"

#include <stdio.h>

#include "server/base/complain.h"

void weir__file_problem_say(void *context, const struct weir_problem *problem)
{
    struct weir__file_problems *problems = context;
    char text[1024];

    weir_problem_print(text, sizeof(text), problems->path, problem);
    fprintf(stderr, "%s\n", text);
    problems->said++;
}

struct weir_rules *weir__rules_file_read(const char *command, const char *path)
{
    struct weir__file_problems problems = { path, 0 };
    struct weir_rules_options options = { .problem = weir__file_problem_say, .context = &problems };
    struct weir_rules *rules;
    struct weir_error error;

    if (weir_rules_read(&rules, path, &options, &error) == WEIR_OK)
        return rules;
    if (problems.said == 0)
        weir__complain(command, "%s", error.text);
    return NULL;
}
