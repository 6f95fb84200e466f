/* Checks IP addresses in brackets. */
#include "common/http/ip_literal.h"

#include <arpa/inet.h>
#include <string.h>

static bool is_ipv6(struct text literal)
{
    char address[INET6_ADDRSTRLEN];
    struct in6_addr parsed;

    if (literal.length >= sizeof address)
        return false;
    memcpy(address, literal.data, literal.length);
    address[literal.length] = '\0';
    return strlen(address) == literal.length && inet_pton(AF_INET6, address, &parsed) == 1;
}

static bool is_future_character(char c)
{
    const struct text marks = TEXT("-._~!$&'()*+,;=:");

    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
           text_find(marks, c) < marks.length;
}

/* "v", a version in hexadecimal, a dot, and the address. */
static bool is_future(struct text literal)
{
    size_t dot = text_find(literal, '.');

    if (literal.length == 0 || (literal.data[0] | 0x20) != 'v' || dot < 2 ||
        dot + 1 >= literal.length)
        return false;
    for (size_t i = 1; i < dot; i++)
        if (text_hex(literal.data[i]) < 0)
            return false;
    for (size_t i = dot + 1; i < literal.length; i++)
        if (!is_future_character(literal.data[i]))
            return false;
    return true;
}

bool ip_literal_is_valid(struct text literal)
{
    return is_ipv6(literal) || is_future(literal);
}
