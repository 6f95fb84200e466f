/* Tells whether bytes are exactly one request. */
#include "common/http/is_one_request.h"

#include "common/http/body_reader.h"
#include "common/http/request.h"

/* A request that is refused for its length has not been parsed: the bytes may be a response, and
 * two servers that answer each other's responses never stop. A request begins with a method and a
 * target. */
static bool begins_as_request(struct text bytes)
{
    size_t end;

    while (bytes.length > 0 && (bytes.data[0] == '\r' || bytes.data[0] == '\n')) {
        bytes.data++;
        bytes.length--;
    }
    for (end = 0; end < bytes.length && request_is_token(bytes.data[end]); end++)
        ;
    return end > 0 && end + 1 < bytes.length && bytes.data[end] == ' ' &&
           text_find(TEXT("/hH*"), bytes.data[end + 1]) < 4;
}

bool is_one_request(struct text bytes)
{
    struct request request;
    struct body_reader body_reader;
    size_t head;

    request_start(&request);
    switch (request_read(&request, bytes, &head)) {
    case REQUEST_PARTIAL:
        return false;
    case REQUEST_REFUSED:
        return request.status != 400 && begins_as_request(bytes);
    case REQUEST_WHOLE:
        break;
    }
    bytes.data += head;
    bytes.length -= head;
    if (request.framing == FRAMING_NONE)
        return bytes.length == 0;
    body_reader_start(&body_reader, &request);
    return body_reader_read(&body_reader, &bytes) == BODY_READER_WHOLE && bytes.length == 0;
}
