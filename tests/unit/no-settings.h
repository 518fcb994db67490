/* no-settings.h -- the settings of a server that was told nothing. */
#ifndef WEIR_TESTS_UNIT_NO_SETTINGS_H
#define WEIR_TESTS_UNIT_NO_SETTINGS_H

#include "server/serve/settings/settings.h"

static const struct weir__settings no_settings = { .config = "",
                                                   .resp = "",
                                                   .http = "",
                                                   .rules = "",
                                                   .table = "",
                                                   .memory = true,
                                                   .tls_certificate = "",
                                                   .tls_key = "",
                                                   .tls_client_ca = "",
                                                   .check_token = "",
                                                   .admin_token = "",
                                                   .check_token_file = "",
                                                   .admin_token_file = "",
                                                   .webhook_token_file = "",
                                                   .trusted_proxies = "",
                                                   .events_log = "",
                                                   .webhook = "",
                                                   .webhook_token = "",
                                                   .request_max = 8192,
                                                   .output_max = 1024 * 1024 };

#endif
