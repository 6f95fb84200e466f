/* Reads the status and the length of a response, and tells whether it is whole. */
#ifndef COLLECT_RESPONSE_H
#define COLLECT_RESPONSE_H

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { RESPONSE_HEAD_MOST = 1024 };

struct response {
    char head[RESPONSE_HEAD_MOST];
    size_t head_bytes; /* received; all of them once `headed` */
    bool headed;
    bool closes;      /* the server ends the connection after it */
    int status;       /* 0: this is no HTTP */
    long long length; /* Content-Length; -1: none */
    long long body;   /* bytes received */
};

static inline void response_begin(struct response *response)
{
    response->head_bytes = 0;
    response->headed = response->closes = false;
    response->status = 0;
    response->length = -1;
    response->body = 0;
}

static inline void response_read_head(struct response *response)
{
    static const char name[] = "\r\nContent-Length:";
    static const char version[] = "HTTP/1.";
    const char *space = strchr(response->head, ' ');

    response->headed = true;
    response->closes = strcasestr(response->head, "\r\nConnection: close\r\n") != NULL;
    if (space && strncmp(response->head, version, sizeof(version) - 1) == 0)
        response->status = atoi(space);
    for (const char *at = response->head; (at = strstr(at, "\r\n")); at += 2)
        if (strncasecmp(at, name, sizeof(name) - 1) == 0)
            response->length = atoll(at + sizeof(name) - 1);
}

/* Takes the next bytes. Returns false if this is no response: its head does not end. */
static inline bool response_take(struct response *response, const char *bytes, size_t count)
{
    if (!response->headed) {
        size_t room = sizeof(response->head) - 1 - response->head_bytes;
        size_t part = count < room ? count : room;
        memcpy(response->head + response->head_bytes, bytes, part);
        response->head_bytes += part;
        response->head[response->head_bytes] = '\0';
        const char *end = strstr(response->head, "\r\n\r\n");
        if (!end)
            return part == count;
        size_t head = (size_t)(end - response->head) + 4;
        size_t before = response->head_bytes - part;
        response->head[head] = '\0';
        response->head_bytes = head;
        response_read_head(response);
        count -= head - before;
    }
    response->body += (long long)count;
    return true;
}

static inline bool response_whole(const struct response *response)
{
    return response->headed && response->status > 0 && response->length >= 0 &&
           response->body >= response->length;
}

#endif
