#!/usr/bin/perl
# Pipelining: many requests on one connection get their responses in order, however the bytes are cut, in each --protocol.
use v5.36;
use FindBin;
use lib "$FindBin::Bin/lib";
use Harness;

my $root = tree(map { ("$_.txt" => "file $_\n" x ($_ + 1)) } 0 .. 99);

each_server(sub ($model) {
    for my $protocol (qw(pipelined persistent)) {
        my $server = start_server(root => $root, options => ['--protocol', $protocol]);

        my @order = map { $_ * 37 % 100 } 1 .. 500;
        my $text  = join '', map { request(GET => "/$_.txt") } @order;
        my @responses = $server->exchange($text . request(GET => '/none', Connection => 'close'));
        is scalar @responses, 501, "$protocol: 501 requests in one write give 501 responses";
        my @wrong = grep { ($responses[$_]{body} // '') ne "file $order[$_]\n" x ($order[$_] + 1) } 0 .. $#order;
        is scalar @wrong, 0, "$protocol: 501 responses come in the order of the requests";
        is $responses[-1]{status}, 404, "$protocol: the last of 501 responses is the 404 of the last request";

        my $mixed = request(HEAD => '/7.txt') . request(POST => '/8.txt', 'Content-Length' => 5, body => 'hello')
            . request(GET => '/9.txt', 'If-None-Match' => '*') . request(GET => '/10.txt', Range => 'bytes=0-3')
            . request(PUT => '/8.txt', 'Transfer-Encoding' => 'chunked', body => "5\r\nhello\r\n0\r\n\r\n")
            . request(GET => '/11.txt', Connection => 'close');
        my @mixed = $server->exchange($mixed . request(GET => '/12.txt'), qw(HEAD POST GET GET PUT GET));
        is_deeply [map { $_->{status} } @mixed], [200, 405, 304, 206, 405, 200],
            "$protocol: mixed requests get responses in order, and none after Connection: close";

        my $pair = request(GET => '/3.txt', 'X-Long' => 'a' x 40)
            . request(POST => '/4.txt', 'Transfer-Encoding' => 'chunked', body => "3;x=y\r\nabc\r\n0\r\nT: v\r\n\r\n")
            . request(GET => '/5.txt', Connection => 'close');
        my @bad;
        for my $cut (1 .. length($pair) - 1) {
            my $connection = $server->connect;
            $connection->send(substr $pair, 0, $cut);
            $connection->fill(0.0005);    # lets the server see the first half alone
            $connection->send(substr $pair, $cut);
            my @got = map { $connection->response } 1 .. 3;
            push @bad, $cut
                if join(' ', map { $_->{status} } @got) ne '200 405 200' || $got[2]{body} ne "file 5\n" x 6
                || !$connection->ends;
        }
        is "@bad", '', "$protocol: three requests get the same responses wherever their bytes are cut in two";

        my $connection = $server->connect;
        for my $byte (split //, $pair) {
            $connection->send($byte);
            $connection->fill(0);
        }
        is_deeply [map { $connection->response->{status} } 1 .. 3], [200, 405, 200], "$protocol: three requests that are sent byte by byte get their responses";
        ok $connection->ends, "$protocol: after three requests that are sent byte by byte the connection ends";

        $connection = $server->connect;
        my $request = request(GET => '/99.txt');
        my @statuses;
        for my $round (1 .. 100) {    # 20 requests are under way at any time
            $connection->send($request x ($round == 1 ? 20 : 1));
            push @statuses, $connection->response->{status};
        }
        push @statuses, $connection->response->{status} for 1 .. 19;
        is scalar(grep { $_ == 200 } @statuses), 119, "$protocol: a moving window of 20 requests gets all responses";
        $connection->close;

        # A response that leaves no room for the next one in the output leaves first: 100 Continue is lost no more than others.
        spit("$root/some.txt", 's' x 16_000);
        my $head = length $server->connect->converse(request(HEAD => '/some.txt', Connection => 'close')) =~ s/Connection: close\r\n//r;
        for my $room (0, 24, 25) {
            spit("$root/fill$room.txt", 'f' x (16_384 - $head - $room));
            my $expecting = request(GET => '/1.txt', Expect => '100-continue', 'Content-Length' => 4, Connection => 'close');
            my $client = $server->connect;
            $client->send(request(GET => "/fill$room.txt") . $expecting);
            my @got = map { $client->response } 1 .. 2;
            $client->send('body');
            push @got, $client->response;
            is join(' ', map { $_->{status} } @got), '200 100 200', "$protocol: a request that expects 100 Continue, $room bytes from the end of the output";
        }

        # The client sends all before it reads: the server must neither hang nor lose a response.
        $connection = $server->connect;
        my $count = 3_000;
        my $bytes = $connection->converse($request x $count . request(GET => '/1.txt', Connection => 'close'));
        is scalar(parse_responses($bytes)), $count + 1, "$protocol: " . ($count + 1) . ' requests at once all get responses';
        $server->stop;
    }
});

done_testing;
