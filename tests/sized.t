#!/usr/bin/perl
# --service sized: documents of a given number of bytes, odd ones constant, even ones new each time.
use v5.36;
use FindBin;
use lib "$FindBin::Bin/lib";
use Harness;

# What is wrong with a document as XML: tags that are not closed, text that could be taken for markup.
sub flaws_of ($page) {
    my (@open, @flaws);
    $page =~ s/\A<!DOCTYPE html>\n// or push @flaws, 'no document type';
    while ($page =~ /\G(?:<(\/?)([a-z]+)(?: [a-z]+="[a-z]+")*>|([^<>&]+)|(.))/gs) {
        if    (defined $4)                      { push @flaws, "a stray $4" }
        elsif (defined $3)                      { push @flaws, 'text outside' if !@open && $3 =~ /\S/ }
        elsif ($1 && ($open[-1] // '') eq $2) { pop @open }
        elsif ($1)                              { push @flaws, "$2 is closed, and was not open" }
        else                                    { push @open, $2 }
    }
    push @flaws, "not closed: @open" if @open;
    for my $element (qw(html head title body)) {
        my $count = () = $page =~ /<$element\b/g;
        push @flaws, "$element occurs $count times" if $count != 1;
    }
    return @flaws;
}

each_server(sub ($model) {
    my $server = start_server(options => [qw(--service sized)]);
    unlike $server->{ready}, qr{ data/}, 'the ready line names no root';

    my @sizes = (100 .. 120, 999 .. 1001, 1151 .. 1153, 1535 .. 1537, 4095 .. 4097, 9999 .. 10001, 16383 .. 16385, 19998 .. 20000);
    my @responses = $server->exchange(join '', map { request(GET => "/$sizes[$_]", $_ == $#sizes ? (Connection => 'close') : ()) } 0 .. $#sizes);
    is scalar @responses, scalar @sizes, 'all pipelined requests are answered';
    for my $i (0 .. $#responses) {
        my ($size, $response) = ($sizes[$i], $responses[$i]);
        my @flaws = flaws_of($response->{body});
        push @flaws, "status $response->{status}" if $response->{status} != 200;
        push @flaws, length($response->{body}) . ' bytes' if length $response->{body} != $size;
        push @flaws, 'Content-Type ' . $response->field('Content-Type') if $response->field('Content-Type') !~ m{^text/html(?:;|\z)};
        push @flaws, 'Cache-Control ' . $response->field('Cache-Control')
            if $response->field('Cache-Control') ne ($size % 2 ? 'max-age=60' : 'no-cache');
        ok !@flaws, "/$size is a well-formed document of $size bytes" or diag(join "\n", @flaws);
    }
    is $server->get('/150?x=1')->{status}, 200, 'a query does not matter';

    for my $path (qw(/ /99 /20001 /0 /0150 /150/ //150 /x /150x /-150 /1e3 /small.txt /%31%35%30 /18446744073709551766)) {
        my $response = $server->get($path);
        is $response->{status}, 400, "$path: 400";
        ok !$response->has('ETag') && !$response->has('Cache-Control'), "$path: nothing to compare it by or to keep it for";
    }
    for my $method (qw(OPTIONS POST PUT DELETE TRACE PATCH BREW get)) {
        my $response = $server->exchange(request($method => '/151', Connection => 'close', 'Content-Length' => 0));
        is $response->{status}, 501, "$method: 501";
    }
    is $server->exchange(request(POST => '/151', Connection => 'close', 'Content-Length' => 5, body => 'abcde'))->{status}, 501,
        'POST with a body: 501';

    # The odd ones never change.
    my $odd = $server->get('/151');
    my ($etag, $modified) = map { $odd->field($_) } qw(ETag Last-Modified);
    like $etag, qr/^"[\x21\x23-\x7e]+"\z/, 'odd: a strong ETag';
    like $modified, qr/ GMT\z/, 'odd: Last-Modified';
    cmp_ok $modified, 'ne', $odd->field('Date'), 'odd: it is not of today';
    is $server->get('/151')->field($_), $odd->field($_), "odd: $_ stays" for qw(ETag Last-Modified);
    is $server->get('/151')->{body}, $odd->{body}, 'odd: the document stays';
    isnt $server->get('/153')->field('ETag'), $etag, 'odd: each has an ETag of its own';
    my $head = $server->head('/151');
    is $head->field('Content-Length'), 151, 'HEAD says how long it is';
    is $head->field($_), $odd->field($_), "HEAD: the same $_" for qw(ETag Last-Modified Cache-Control Content-Type);
    my @conditions = (
        [304, 'If-None-Match' => $etag],
        [304, 'If-None-Match' => "W/$etag"],
        [304, 'If-None-Match' => '*'],
        [304, 'If-Modified-Since' => $modified],
        [304, 'If-Modified-Since' => http_date(time)],
        [200, 'If-Modified-Since' => http_date(0)],
        [200, 'If-None-Match' => '"other"', 'If-Modified-Since' => $modified],
        [200, 'If-Match' => $etag],
        [412, 'If-Match' => '"other"'],
        [200, 'If-Unmodified-Since' => $modified],
        [412, 'If-Unmodified-Since' => http_date(0)],
        [206, Range => 'bytes=0-9'],
        [206, Range => 'bytes=0-9', 'If-Range' => $etag],
        [200, Range => 'bytes=0-9', 'If-Range' => '"other"'],
    );
    for my $case (@conditions) {
        my ($status, @fields) = @$case;
        my $response = $server->get('/151', @fields);
        my $name = join ' ', @fields;
        is $response->{status}, $status, "odd, $name: $status";
        is $response->field('Cache-Control'), 'max-age=60', "odd, $name: how long it may be kept" if $status == 304;
        is $response->field('ETag'), $etag, "odd, $name: the ETag" if $status == 304;
    }

    # The even ones are modified all the time: whatever a client remembers, they are newer.
    my %seen;
    my $even;
    for (1 .. 30) {
        $even = $server->get('/150');
        $seen{ $even->field('ETag') }++;
        fail('even: Last-Modified is ' . $even->field('Last-Modified') . ', not the Date ' . $even->field('Date'))
            if $even->field('Last-Modified') ne $even->field('Date');
    }
    my $connection = $server->connect;
    $connection->send(request(GET => '/150') x 30);
    $seen{ $connection->response->field('ETag') }++ for 1 .. 30;
    $connection->close;
    is scalar keys %seen, 60, 'even: 60 requests, 60 ETags';
    my $last = $even->field('Last-Modified');
    my $fresh = $even->field('ETag');
    @conditions = (
        [200, 'If-None-Match' => $fresh],
        [200, 'If-None-Match' => "W/$fresh"],
        [200, 'If-Modified-Since' => $last],
        [200, 'If-Modified-Since' => http_date(time + 86_400)],
        [412, 'If-Match' => $fresh],
        [412, 'If-Unmodified-Since' => $last],
        [200, Range => 'bytes=0-9', 'If-Range' => $fresh],
        [200, Range => 'bytes=0-9', 'If-Range' => $last],
    );
    for my $case (@conditions) {
        my ($status, @fields) = @$case;
        my ($name) = $fields[0] eq 'Range' ? $fields[2] : $fields[0];
        is $server->get('/150', @fields)->{status}, $status, "even, $name with what the response before said: $status";
    }
    is $server->head('/150')->field('Cache-Control'), 'no-cache', 'even: it may not be used without asking again';

    $server->stop;

    $server = start_server(options => [qw(--service sized --max-age 3600)]);
    is $server->get('/101')->field('Cache-Control'), 'max-age=3600', '--max-age says how long an odd one may be kept';
    is $server->get('/101')->field('ETag') =~ s/101/151/r, $etag, 'the ETags are those of the server before';
    $server->stop;
    $server = start_server(options => [qw(--service sized --max-age 0)]);
    is $server->get('/101')->field('Cache-Control'), 'max-age=0', '--max-age 0';
    $server->stop;

    # No directory is needed, and none can be read.
    my $empty = scratch();
    $server = start_server(options => [qw(--service sized)], directory => "$empty", sandbox => !sanitized());
    is $server->get('/100')->{status}, 200, 'it runs where there are no documents';
    $server->stop(warnings => qr/sandbox|landlock/i);

    for my $wrong (['--max-age', '-1'], ['--max-age', 'x'], ['--max-age', '1.5'], ['--service', 'none']) {
        my $end = run_server(@$wrong, 0);
        is $end->{status}, 2, "@$wrong: a bad command line";
        like $end->{err}, qr/^\S+: \Q$wrong->[0]\E .*\n\z/, "@$wrong: one line that names it";
    }
});

done_testing;
