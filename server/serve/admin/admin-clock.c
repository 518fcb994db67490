/* admin-clock.c -- the time of decisions, which tests set. */
#include "server/serve/admin/admin.h"

void weir__admin_clock(struct weir__verb_call *call)
{
    bool set = weir__call_given(call, 0);

    if (set && !call->server->test_clock) {
        weir__call_fail(call, 400,
                        "the clock can only be set if the server was started with --test-clock");
        return;
    }
    if (set) {
        weir__server_set_clock(call->server, call->values[0].number);
        call->loop->now_is_old = true;
    }
    call->answer = set && !call->http ? WEIR__ANSWER_OK : WEIR__ANSWER_NUMBER;
    call->number = set ? call->values[0].number : call->now;
}
