/* trusted-proxies.h -- the setting trusted-proxies: networks that are believed about a request's
 * client. */
#ifndef WEIR_SERVER_SERVE_SETTINGS_TRUSTED_PROXIES_H
#define WEIR_SERVER_SERVE_SETTINGS_TRUSTED_PROXIES_H

#include "weir.h"

struct weir__cidr_set;

/* Networks and addresses, separated by commas; blanks around them do not matter.  *out is NULL if
 * there are none.  A mistake is told with its column. */
int weir__proxies_parse(struct weir__cidr_set **out, const char *text, struct weir_error *error);

#endif
