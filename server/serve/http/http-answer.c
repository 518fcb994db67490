/* http-answer.c -- heads and bodies, and problems that are no refusals.
 *
 * A body is written before its head, which has to tell its length: decisions on the stack, where
 * there is room for the longest, and all else in a buffer.  Head and body are then copied behind
 * each other into the answers that leave in one write.
 */
#include <stdarg.h>
#include <stdio.h>
#include <time.h>

#include "server/base/date.h"
#include "server/serve/http/http-pen.h"
#include "server/serve/http/http.h"

#define HEAD_ROOM 512 /* a head without the headers that come from elsewhere */

/* ----------------------------------------------------------------- heads ---- */

static void make_date(struct weir__loop *loop, int64_t second)
{
    static const char days[] = "SunMonTueWedThuFriSat";
    time_t at = (time_t)second;
    struct tm tm;

    if (gmtime_r(&at, &tm) == NULL || tm.tm_year + 1900 > 9999)
        memset(&tm, 0, sizeof(tm));
    snprintf(loop->date, sizeof(loop->date), "%.3s, %02u %.3s %04u %02u:%02u:%02u GMT",
             days + 3 * tm.tm_wday, (unsigned)tm.tm_mday % 100, weir__date_months + 3 * tm.tm_mon,
             (unsigned)(tm.tm_year + 1900) % 10000, (unsigned)tm.tm_hour % 100,
             (unsigned)tm.tm_min % 100, (unsigned)tm.tm_sec % 100);
    loop->date_second = second;
}

static void put_date(struct weir__pen *pen, struct weir__loop *loop)
{
    int64_t second = weir_table_real(loop->server->table, weir__loop_now(loop)) / WEIR_SECOND;

    if (second != loop->date_second || loop->date[0] == '\0')
        make_date(loop, second);
    WEIR__PEN_PUT(pen, "\r\nDate: ");
    weir__pen_put(pen, loop->date, 29);
}

static void put_status(struct weir__pen *pen, int status)
{
    if (status == 200) {
        WEIR__PEN_PUT(pen, "HTTP/1.1 200 OK");
        return;
    }
    WEIR__PEN_PUT(pen, "HTTP/1.1 ");
    weir__pen_number(pen, status);
    WEIR__PEN_PUT(pen, " ");
    weir__pen_text(pen, weir__http_status_text(status));
}

void weir__http_answer(const struct weir__http_manner *manner, int status, const char *type,
                       struct weir__text headers, struct weir__text body)
{
    struct weir__buffer *out = manner->out;
    struct weir__pen pen = { weir__buffer_room(out, HEAD_ROOM + headers.len + body.len) };
    bool bodiless = status < 200 || status == 204 ||
                    status == 304; /* a body would be taken for the next answer */

    if (pen.at == NULL)
        return;
    put_status(&pen, status);
    put_date(&pen, manner->loop);
    if (type && !bodiless) {
        WEIR__PEN_PUT(&pen, "\r\nContent-Type: ");
        weir__pen_text(&pen, type);
    }
    if (!bodiless) {
        WEIR__PEN_PUT(&pen, "\r\nContent-Length: ");
        weir__pen_number(&pen, (int64_t)body.len);
    }
    WEIR__PEN_PUT(&pen, "\r\n");
    if (headers.len)
        weir__pen_put(&pen, headers.bytes, headers.len);
    if (manner->close)
        WEIR__PEN_PUT(&pen, "Connection: close\r\n");
    else if (manner->old)
        WEIR__PEN_PUT(&pen, "Connection: keep-alive\r\n");
    WEIR__PEN_PUT(&pen, "\r\n");
    if (!manner->head_only && !bodiless && body.len)
        weir__pen_put(&pen, body.bytes, body.len);
    out->len = (size_t)(pen.at - out->bytes);
}

void weir__http_json(const struct weir__http_manner *manner, int status, const char *text)
{
    weir__http_answer(manner, status, WEIR__HTTP_JSON, (struct weir__text){ 0 },
                      (struct weir__text){ text, strlen(text) });
}

/* -------------------------------------------------------------- problems ---- */

/* Programs tell errors apart by these.  None of them is a refusal: those have codes that begin with
 * weir-. */
static const char *code_of(int status)
{
    static const struct {
        int status;
        const char *code;
    } codes[] = {
        { 400, "bad-request" },     { 401, "unauthorized" },       { 403, "forbidden" },
        { 404, "not-found" },       { 405, "method-not-allowed" }, { 409, "conflict" },
        { 413, "too-large" },       { 414, "too-large" },          { 417, "expectation" },
        { 422, "unprocessable" },   { 429, "wrong-tokens" },       { 431, "too-large" },
        { 501, "not-implemented" }, { 503, "not-ready" },          { 505, "version" },
    };

    for (size_t i = 0; i < sizeof(codes) / sizeof(codes[0]); i++)
        if (codes[i].status == status)
            return codes[i].code;
    return status >= 500 ? "internal" : "bad-request";
}

void weir__http_problem_with(const struct weir__http_manner *manner, int status,
                             const char *headers, const char *detail,
                             const struct weir__buffer *object)
{
    struct weir__buffer body = { 0 };

    weir__buffer_open(&body, NULL, '{');
    weir__buffer_member(&body, "type", "about:blank");
    weir__buffer_member(&body, "title", weir__http_status_text(status));
    weir__buffer_member_number(&body, "status", status);
    weir__buffer_member(&body, "code", code_of(status));
    weir__buffer_member(&body, "detail", detail);
    if (object && object->len > strlen("{}") && !object->failed) {
        weir__buffer_text(&body, ",");
        weir__buffer_add(&body, object->bytes + 1, object->len - 1);
    } else {
        weir__buffer_close(&body, "}");
    }
    if (body.failed)
        manner->out->failed = true;
    else
        weir__http_answer(manner, status, WEIR__HTTP_PROBLEM,
                          (struct weir__text){ headers, headers ? strlen(headers) : 0 },
                          (struct weir__text){ body.bytes, body.len });
    weir__buffer_free(&body);
}

void weir__http_problem(const struct weir__http_manner *manner, int status, const char *headers,
                        const char *format, ...)
{
    char detail[640];
    va_list args;

    va_start(args, format);
    vsnprintf(detail, sizeof(detail), format, args);
    va_end(args);
    weir__http_problem_with(manner, status, headers, detail, NULL);
}

void weir__http_bad(struct weir__http_call *call, int status, const char *problem)
{
    weir__http_problem_with(&call->manner, status, NULL, problem, NULL);
}
