#!/usr/bin/perl
# Error pages: HTML that says what is wrong with the request, with every text of the client escaped.
use v5.36;
use FindBin;
use lib "$FindBin::Bin/lib";
use Harness;

my $root = tree('small.txt' => 's' x 1000, 'folder/' => 1);
my @cases = (
    [400, 'Bad Request',                     "GET /small.txt HTTP/1.1\r\n\r\n",                              qr/Host/],
    [400, 'Bad Request',                     "GET /%zz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n",    qr/percent|escape|encod/i],
    [403, 'Forbidden',                       request(GET => '/folder/', Connection => 'close'),              qr/director|list/i],
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

my $root = tree('small.txt' => 's' x 1000, 'folder/' => '');

each_server(sub ($model) {
    my $server = start_server(root => $root);
    for my $case (@cases) {
        my ($status, $reason, $request, $about) = @$case;
        my $response = $server->exchange($request);
        is $response->{status}, $status, "$status: the response has this status";
        like $response->{reason}, qr/\A(?:$reason)\z/, "$status: the response has the standard reason phrase";
        like $response->field('Content-Type'), qr{^text/html}, "$status: Content-Type is text/html";
        like $response->{body}, qr/\A<!DOCTYPE html>/i, "$status: the page begins with a document type";
        like $response->{body}, qr/\b$status\b/, "$status: the page names the status";
        my ($text) = $response->{body} =~ m{</h1>(.*)}s;
        like $text // '', $about, "$status: the page says what is wrong";
        unlike $response->{body}, qr/fork|thread|errno|\.c:\d/i, "$status: the page says nothing about the implementation";
    }

    for my $target ('/<script>alert(1)</script>', '/%3Cscript%3Ealert(1)%3C/script%3E', '/x?<script>alert(1)</script>',
        '/"onload="x', "/'x") {
        my $response = $server->exchange("GET $target HTTP/1.1\r\nHost: <script>alert(1)</script>\r\nConnection: close\r\n\r\n");
        like $response->{status}, qr/^40[04]$/, "$target with a bad Host is refused";
        unlike $response->{body}, qr/<script>|"onload/, "$target with a bad Host: the page has no unescaped text of the request";
        $response = $server->get($target, 'User-Agent' => '<script>alert(1)</script>', Referer => '<script>alert(1)</script>');
        unlike $response->{body}, qr/<script>|"onload/, "$target with a good Host: the page has no unescaped text of the request";
    }
    my $response = $server->get('/none', 'If-None-Match' => '*', Range => 'bytes=0-1');
    is $response->{status}, 404, 'a missing file with If-None-Match and Range gets 404';
    cmp_ok length($response->{body}), '>', 20, 'a missing file with If-None-Match and Range gets the whole error page';
    $server->stop;
});

done_testing;
