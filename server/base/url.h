/* url.h -- the URL of a webhook. */
#ifndef WEIR_SERVER_BASE_URL_H
#define WEIR_SERVER_BASE_URL_H

#include "wire/host.h"
#include "weir.h"

struct weir__url {
    bool tls;               /* https */
    struct weir__host host; /* port "80" and "443" unless named */
    char authority[272];    /* as Host has it */
    char path[1024];        /* with the query */
};

int weir__url_parse(struct weir__url *out, const char *text, struct weir_error *error);

#endif
