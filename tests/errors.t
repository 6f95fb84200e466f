#!/usr/bin/perl
# Error pages: HTML that says what was wrong; all that came from the client is escaped.
use v5.36;
use FindBin;
use lib "$FindBin::Bin/lib";
use Harness;

my @cases = (
    [400, 'Bad Request',                     "GET /small.txt HTTP/1.1\r\n\r\n",                              qr/Host/],
    [400, 'Bad Request',                     "GET /%zz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n",    qr/percent|escape|encod/i],
    [403, 'Forbidden',                       request(GET => '/', Connection => 'close'),                     qr/director|list/i],
    [404, 'Not Found',                       request(GET => '/none', Connection => 'close'),                 qr/no such|not found|document/i],
    [405, 'Method Not Allowed',              request(DELETE => '/small.txt', Connection => 'close'),         qr/method|GET|only be read/i],
    [412, 'Precondition Failed',             request(GET => '/small.txt', 'If-Match' => '"x"', Connection => 'close'), qr/condition|match|state/i],
    [413, 'Content Too Large|Payload Too Large|Request Entity Too Large',
        request(POST => '/small.txt', 'Content-Length' => 99_999_999),                                        qr/large|long|limit|body|content/i],
    [414, 'URI Too Long|Request-URI Too Long', 'GET /' . 'x' x 9000 . " HTTP/1.1\r\nHost: x\r\n\r\n",          qr/long/i],
    [416, 'Range Not Satisfiable|Requested Range Not Satisfiable',
        request(GET => '/small.txt', Range => 'bytes=5000-', Connection => 'close'),                          qr/range/i],
    [417, 'Expectation Failed',              request(GET => '/small.txt', Expect => 'tea', Connection => 'close'), qr/expect/i],
    [431, 'Request Header Fields Too Large', request(GET => '/small.txt', map { ("X-$_" => 1) } 1 .. 200),    qr/field|head/i],
    [501, 'Not Implemented',                 request(BREW => '/small.txt', Connection => 'close'),           qr/method/i],
    [501, 'Not Implemented',                 request(POST => '/small.txt', 'Transfer-Encoding' => 'rot13'),  qr/coding|encoding/i],
    [505, 'HTTP Version Not Supported',      "GET / HTTP/2.0\r\nHost: x\r\n\r\n",                            qr/version|HTTP/i],
);

each_server(sub ($model) {
    my $server = start_server();
    for my $case (@cases) {
        my ($status, $reason, $request, $about) = @$case;
        my $response = $server->exchange($request);
        is $response->{status}, $status, "$status: the status";
        like $response->{reason}, qr/\A(?:$reason)\z/, "$status: the reason";
        like $response->field('Content-Type'), qr{^text/html}, "$status: HTML";
        like $response->{body}, qr/\A<!DOCTYPE html>/i, "$status: a document type";
        like $response->{body}, qr/\b$status\b/, "$status: the page names the status";
        my ($text) = $response->{body} =~ m{</h1>(.*)}s;
        like $text // '', $about, "$status: the page says what was wrong";
        unlike $response->{body}, qr/fork|thread|errno|\.c:\d/i, "$status: and nothing of the inside";
    }

    for my $target ('/<script>alert(1)</script>', '/%3Cscript%3Ealert(1)%3C/script%3E', '/x?<script>alert(1)</script>',
        '/"onload="x', "/'x") {
        my $response = $server->exchange("GET $target HTTP/1.1\r\nHost: <script>alert(1)</script>\r\nConnection: close\r\n\r\n");
        like $response->{status}, qr/^40[04]$/, "$target: refused";
        unlike $response->{body}, qr/<script>|"onload/, "$target: nothing comes back unescaped";
        $response = $server->get($target, 'User-Agent' => '<script>alert(1)</script>', Referer => '<script>alert(1)</script>');
        unlike $response->{body}, qr/<script>|"onload/, "$target: nor with a good Host";
    }
    my $response = $server->get('/none', 'If-None-Match' => '*', Range => 'bytes=0-1');
    is $response->{status}, 404, 'conditions and ranges do not touch an error';
    cmp_ok length($response->{body}), '>', 20, 'and its page is whole';
    $server->stop;
});

done_testing;
