#!/usr/bin/perl
# Methods: GET, HEAD, OPTIONS, those that are known and not allowed, and those that are not known.
use v5.36;
use FindBin;
use lib "$FindBin::Bin/lib";
use Harness;

each_server(sub ($model) {
    my $server = start_server();

    for my $file ('small.txt', 'big.txt') {
        my $content = slurp("$FindBin::Bin/../data/$file");
        my $get = $server->get("/$file");
        is $get->{status}, 200, "GET /$file: 200";
        ok $get->{body} eq $content, "GET /$file: the file, byte for byte";
        is $get->field('Content-Length'), length $content, "GET /$file: its length";
        like $get->field('Content-Type'), qr{^text/plain}, "GET /$file: its type";

        my $head = $server->head("/$file");
        is $head->{status}, 200, "HEAD /$file: 200";
        my %fields = map { $_ => { %{ $_->{fields} } } } $get, $head;
        delete $fields{$_}{date} for $get, $head;
        is_deeply $fields{$head}, $fields{$get}, "HEAD /$file: the fields of GET";
    }
    is length slurp("$FindBin::Bin/../data/small.txt"), 1_000,  'data/small.txt has 1,000 bytes';
    is length slurp("$FindBin::Bin/../data/big.txt"),   10_000, 'data/big.txt has 10,000 bytes';

    my ($none, $found) = $server->exchange(
        request(HEAD => '/none') . request(GET => '/small.txt', Connection => 'close'), 'HEAD', 'GET');
    is $none->{status}, 404, 'HEAD of a missing file: 404';
    cmp_ok $none->field('Content-Length'), '>', 0, 'HEAD of a missing file: the length of the error page';
    is $found->{status}, 200, 'HEAD of a missing file: no body, so the next response follows at once';

    for my $method (qw(POST PUT DELETE PATCH TRACE)) {
        my $response = $server->exchange(request($method => '/small.txt', 'Content-Length' => 0, Connection => 'close'));
        is $response->{status}, 405, "$method: 405";
        is_deeply [sort split /[ ,]+/, $response->field('Allow')], [qw(GET HEAD OPTIONS)], "$method: Allow";
    }
    my $connect = $server->exchange(request(CONNECT => 'localhost:80', Host => 'localhost:80', Connection => 'close'));
    is $connect->{status}, 405, 'CONNECT: 405';
    ok $connect->has('Allow'), 'CONNECT: Allow';

    for my $method (qw(FOO get Get HEADS GE PROPFIND X-1), q(!#$%&'*+-.^_`|~)) {
        my $response = $server->exchange(request($method => '/small.txt', Connection => 'close'));
        is $response->{status}, 501, "$method: 501";
    }

    for my $target ('*', '/', '/small.txt', '/none') {
        my $response = $server->exchange(request(OPTIONS => $target, Connection => 'close'));
        is $response->{status}, 204, "OPTIONS $target: 204";
        is_deeply [sort split /[ ,]+/, $response->field('Allow')], [qw(GET HEAD OPTIONS)], "OPTIONS $target: Allow";
        is $response->{body}, '', "OPTIONS $target: no body";
    }
    for my $method (qw(GET HEAD)) {
        my $response = $server->exchange(request($method => '*', Connection => 'close'), $method);
        is $response->{status}, 400, "$method *: 400";
    }

    $server->stop;
});

done_testing;
