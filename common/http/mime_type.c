/* The table of media types. */
#include "common/http/mime_type.h"

static const struct {
    struct text ending;
    struct text type;
} types[] = {
    {TEXT_IS("txt"), TEXT_IS("text/plain; charset=utf-8")},
    {TEXT_IS("html"), TEXT_IS("text/html; charset=utf-8")},
    {TEXT_IS("htm"), TEXT_IS("text/html; charset=utf-8")},
    {TEXT_IS("css"), TEXT_IS("text/css; charset=utf-8")},
    {TEXT_IS("js"), TEXT_IS("text/javascript; charset=utf-8")},
    {TEXT_IS("mjs"), TEXT_IS("text/javascript; charset=utf-8")},
    {TEXT_IS("json"), TEXT_IS("application/json")},
    {TEXT_IS("svg"), TEXT_IS("image/svg+xml")},
    {TEXT_IS("png"), TEXT_IS("image/png")},
    {TEXT_IS("jpg"), TEXT_IS("image/jpeg")},
    {TEXT_IS("jpeg"), TEXT_IS("image/jpeg")},
    {TEXT_IS("gif"), TEXT_IS("image/gif")},
    {TEXT_IS("webp"), TEXT_IS("image/webp")},
    {TEXT_IS("avif"), TEXT_IS("image/avif")},
    {TEXT_IS("ico"), TEXT_IS("image/vnd.microsoft.icon")},
    {TEXT_IS("pdf"), TEXT_IS("application/pdf")},
    {TEXT_IS("xml"), TEXT_IS("text/xml; charset=utf-8")},
    {TEXT_IS("csv"), TEXT_IS("text/csv; charset=utf-8")},
    {TEXT_IS("tsv"), TEXT_IS("text/tab-separated-values; charset=utf-8")},
    {TEXT_IS("md"), TEXT_IS("text/markdown; charset=utf-8")},
    {TEXT_IS("c"), TEXT_IS("text/plain; charset=utf-8")},
    {TEXT_IS("h"), TEXT_IS("text/plain; charset=utf-8")},
    {TEXT_IS("woff"), TEXT_IS("font/woff")},
    {TEXT_IS("woff2"), TEXT_IS("font/woff2")},
    {TEXT_IS("mp3"), TEXT_IS("audio/mpeg")},
    {TEXT_IS("ogg"), TEXT_IS("audio/ogg")},
    {TEXT_IS("mp4"), TEXT_IS("video/mp4")},
    {TEXT_IS("webm"), TEXT_IS("video/webm")},
    {TEXT_IS("wasm"), TEXT_IS("application/wasm")},
    {TEXT_IS("zip"), TEXT_IS("application/zip")},
    {TEXT_IS("gz"), TEXT_IS("application/gzip")},
};

static struct text ending_of(struct text path)
{
    for (size_t i = path.length; i > 0 && path.data[i - 1] != '/'; i--)
        if (path.data[i - 1] == '.')
            return (struct text){path.data + i, path.length - i};
    return (struct text){0};
}

struct text mime_type_of(struct text path)
{
    struct text ending = ending_of(path);

    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++)
        if (text_same(ending, types[i].ending))
            return types[i].type;
    return TEXT("application/octet-stream");
}
