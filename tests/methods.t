#!/usr/bin/perl
# Methods: GET, HEAD and OPTIONS are served, other known ones get 405, unknown ones get 501.
use v5.36;
use FindBin;
use lib "$FindBin::Bin/lib";
use Harness;

each_server(sub ($model) {
    my $server = start_server();

    for my $file ('small.txt', 'big.txt') {
        my $content = slurp("$FindBin::Bin/../data/$file");
        my $get = $server->get("/$file");
        is $get->{status}, 200, "GET /$file gets 200";
        ok $get->{body} eq $content, "GET /$file gets the file, byte for byte";
        is $get->field('Content-Length'), length $content, "GET /$file: Content-Length is the size of the file";
        like $get->field('Content-Type'), qr{^text/plain}, "GET /$file: Content-Type is text/plain";

        my $head = $server->head("/$file");
        is $head->{status}, 200, "HEAD /$file gets 200";
        my %fields = map { $_ => { %{ $_->{fields} } } } $get, $head;
        delete $fields{$_}{date} for $get, $head;
        is_deeply $fields{$head}, $fields{$get}, "HEAD /$file gets the fields of GET";
    }
    is length slurp("$FindBin::Bin/../data/small.txt"), 1_000,  'data/small.txt has 1,000 bytes';
    is length slurp("$FindBin::Bin/../data/big.txt"),   10_000, 'data/big.txt has 10,000 bytes';

    my ($none, $found) = $server->exchange(
        request(HEAD => '/none') . request(GET => '/small.txt', Connection => 'close'), 'HEAD', 'GET');
    is $none->{status}, 404, 'HEAD of a missing file gets 404';
    cmp_ok $none->field('Content-Length'), '>', 0, 'HEAD of a missing file: Content-Length is that of the error page';
    is $found->{status}, 200, 'HEAD of a missing file gets no body: the next response follows the head';

    for my $method (qw(POST PUT DELETE PATCH TRACE)) {
        my $response = $server->exchange(request($method => '/small.txt', 'Content-Length' => 0, Connection => 'close'));
        is $response->{status}, 405, "$method is refused with 405";
        is_deeply [sort split /[ ,]+/, $response->field('Allow')], [qw(GET HEAD OPTIONS)], "$method: the 405 lists the allowed methods";
    }
    my $connect = $server->exchange(request(CONNECT => 'localhost:80', Host => 'localhost:80', Connection => 'close'));
    is $connect->{status}, 405, 'CONNECT is refused with 405';
    ok $connect->has('Allow'), 'CONNECT: the 405 has Allow';

    for my $method (qw(FOO get Get HEADS GE PROPFIND X-1), q(!#$%&'*+-.^_`|~)) {
        my $response = $server->exchange(request($method => '/small.txt', Connection => 'close'));
        is $response->{status}, 501, "$method is refused with 501";
    }

    for my $target ('*', '/', '/small.txt', '/none') {
        my $response = $server->exchange(request(OPTIONS => $target, Connection => 'close'));
        is $response->{status}, 204, "OPTIONS $target gets 204";
        is_deeply [sort split /[ ,]+/, $response->field('Allow')], [qw(GET HEAD OPTIONS)], "OPTIONS $target gets the allowed methods";
        is $response->{body}, '', "OPTIONS $target gets no body";
    }
    for my $method (qw(GET HEAD)) {
        my $response = $server->exchange(request($method => '*', Connection => 'close'), $method);
        is $response->{status}, 400, "$method * is refused with 400";
    }

    $server->stop;
});

done_testing;
