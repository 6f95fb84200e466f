/* IP addresses in brackets, as URIs and Host have them (RFC 3986, section 3.2.2). */
#ifndef COMMON_HTTP_IP_LITERAL_H
#define COMMON_HTTP_IP_LITERAL_H

#include "common/base/text.h"

/* Returns true if the text between the brackets is an IPv6 address or an IPvFuture. */
bool ip_literal_is_valid(struct text literal);

#endif
