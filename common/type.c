#include "common/type.h"

static const struct {
    struct text ending;
    const char *type;
} types[] = {
    {TEXT_IS("txt"), "text/plain; charset=utf-8"},
    {TEXT_IS("html"), "text/html; charset=utf-8"},
    {TEXT_IS("htm"), "text/html; charset=utf-8"},
    {TEXT_IS("css"), "text/css; charset=utf-8"},
    {TEXT_IS("js"), "text/javascript; charset=utf-8"},
    {TEXT_IS("mjs"), "text/javascript; charset=utf-8"},
    {TEXT_IS("json"), "application/json"},
    {TEXT_IS("svg"), "image/svg+xml"},
    {TEXT_IS("png"), "image/png"},
    {TEXT_IS("jpg"), "image/jpeg"},
    {TEXT_IS("jpeg"), "image/jpeg"},
    {TEXT_IS("gif"), "image/gif"},
    {TEXT_IS("webp"), "image/webp"},
    {TEXT_IS("avif"), "image/avif"},
    {TEXT_IS("ico"), "image/vnd.microsoft.icon"},
    {TEXT_IS("pdf"), "application/pdf"},
    {TEXT_IS("xml"), "text/xml; charset=utf-8"},
    {TEXT_IS("csv"), "text/csv; charset=utf-8"},
    {TEXT_IS("tsv"), "text/tab-separated-values; charset=utf-8"},
    {TEXT_IS("md"), "text/markdown; charset=utf-8"},
    {TEXT_IS("c"), "text/plain; charset=utf-8"},
    {TEXT_IS("h"), "text/plain; charset=utf-8"},
    {TEXT_IS("woff"), "font/woff"},
    {TEXT_IS("woff2"), "font/woff2"},
    {TEXT_IS("mp3"), "audio/mpeg"},
    {TEXT_IS("ogg"), "audio/ogg"},
    {TEXT_IS("mp4"), "video/mp4"},
    {TEXT_IS("webm"), "video/webm"},
    {TEXT_IS("wasm"), "application/wasm"},
    {TEXT_IS("zip"), "application/zip"},
    {TEXT_IS("gz"), "application/gzip"},
};

static struct text ending_of(struct text path)
{
    for (size_t i = path.length; i > 0 && path.data[i - 1] != '/'; i--)
        if (path.data[i - 1] == '.')
            return (struct text){path.data + i, path.length - i};
    return (struct text){0};
}

const char *type_of(struct text path)
{
    struct text ending = ending_of(path);

    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++)
        if (text_same(ending, types[i].ending))
            return types[i].type;
    return "application/octet-stream";
}
