/* follow-rules.c -- the text of the fleet's rules that is applied next. */
#include "unit/test.h"

#include <stdlib.h>

#include "cluster/agent/agent.h"

/* For one of them there was no memory: the next is whole. */
TEST(test_D6_a_text_after_one_that_found_no_memory)
{
    struct weir_fleet *f = calloc(1, sizeof(*f));
    struct weir__edition of = { 2, 7 };

    assert_non_null(f);
    f->follow.text.failed = true;
    weir__follow_fetched(f, (struct weir__text){ "rules", 5 }, &of);
    assert_false(f->follow.text.failed);
    assert_int_equal(f->follow.text.len, 5);
    assert_string_equal(f->follow.text.bytes, "rules");
    assert_int_equal(f->follow.fetched.version, 2);
    weir__buffer_free(&f->follow.text);
    free(f);
}
