/* rules-on-table.c -- the rules of a file on the table of a file. */
#include "server/cli/rules-on-table.h"

#include "engine/explain.h"
#include "server/base/complain.h"
#include "server/base/table-file.h"
#include "server/describe/rules-file.h"

static int use_rules(struct weir *weir, const char *command, const char *path,
                     struct weir_error *error)
{
    struct weir_rules *rules = weir__rules_file_read(command, path);
    int code = rules ? weir_use(weir, rules, 0, error) : WEIR_INVALID;

    if (code != WEIR_OK)
        weir_rules_destroy(rules);
    return code;
}

int weir__rules_on_table_open(struct weir__rules_on_table *out, const char *command,
                              const char *table, const char *rules, struct weir_error *error)
{
    *out = (struct weir__rules_on_table){ 0 };
    error->text[0] = '\0';
    int code = table ? weir__table_attach(command, &out->file, table, error) : WEIR_OK;
    if (code == WEIR_OK)
        code = weir_create(&out->weir, &(struct weir_options){ .table = out->file }, error);
    if (code == WEIR_OK)
        code = weir__engine_peek_only(out->weir, error);
    if (code == WEIR_OK && rules)
        code = use_rules(out->weir, command, rules, error);
    return code;
}

bool weir__rules_on_table_open_or_complain(struct weir__rules_on_table *out, const char *command,
                                           const char *table, const char *rules)
{
    struct weir_error error;

    if (weir__rules_on_table_open(out, command, table, rules, &error) == WEIR_OK)
        return true;
    if (error.text[0] != '\0')
        weir__complain(command, "%s", error.text);
    weir__rules_on_table_close(out);
    return false;
}

void weir__rules_on_table_close(struct weir__rules_on_table *it)
{
    weir_destroy(it->weir);
    weir_table_destroy(it->file);
}
