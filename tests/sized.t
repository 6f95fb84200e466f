#!/usr/bin/perl
# --service sized: generated documents of a given size. Those of an odd size are constant, those of an even size change.
use v5.36;
use FindBin;
use lib "$FindBin::Bin/lib";
use Harness;

# Returns what is wrong with a document as XML, such as elements that are not closed and unescaped characters.
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
    is scalar @responses, scalar @sizes, 'all pipelined requests get responses';
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
    is $server->get('/150?x=1')->{status}, 200, 'a query does not change the document';

    for my $path (qw(/ /99 /20001 /0 /0150 /150/ //150 /x /150x /-150 /1e3 /small.txt /%31%35%30 /18446744073709551766)) {
        my $response = $server->get($path);
        is $response->{status}, 400, "$path is refused with 400";
        ok !$response->has('ETag') && !$response->has('Cache-Control'), "$path: the error has neither ETag nor Cache-Control";
    }
    for my $method (qw(OPTIONS POST PUT DELETE TRACE PATCH BREW get)) {
        my $response = $server->exchange(request($method => '/151', Connection => 'close', 'Content-Length' => 0));
        is $response->{status}, 501, "$method is refused with 501";
    }
    is $server->exchange(request(POST => '/151', Connection => 'close', 'Content-Length' => 5, body => 'abcde'))->{status}, 501,
        'POST with a body is refused with 501';

    # Documents of an odd size never change.
    my $odd = $server->get('/151');
    my ($etag, $modified) = map { $odd->field($_) } qw(ETag Last-Modified);
    like $etag, qr/^"[\x21\x23-\x7e]+"\z/, 'odd: the ETag is strong';
    like $modified, qr/ GMT\z/, 'odd: there is a Last-Modified';
    cmp_ok $modified, 'ne', $odd->field('Date'), 'odd: Last-Modified is not the Date';
    is $server->get('/151')->field($_), $odd->field($_), "odd: $_ does not change" for qw(ETag Last-Modified);
    is $server->get('/151')->{body}, $odd->{body}, 'odd: the document does not change';
    isnt $server->get('/153')->field('ETag'), $etag, 'odd: each size has another ETag';
    my $head = $server->head('/151');
    is $head->field('Content-Length'), 151, 'HEAD gives the length';
    is $head->field($_), $odd->field($_), "HEAD has the same $_ as GET" for qw(ETag Last-Modified Cache-Control Content-Type);
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
        is $response->{status}, $status, "odd, $name gets $status";
        is $response->field('Cache-Control'), 'max-age=60', "odd, $name: the 304 has Cache-Control" if $status == 304;
        is $response->field('ETag'), $etag, "odd, $name: the 304 has the ETag" if $status == 304;
    }

    # Documents of an even size are always modified: a document is newer than any validator that a client has.
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
    is scalar keys %seen, 60, 'even: 60 requests get 60 different ETags';
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
        is $server->get('/150', @fields)->{status}, $status, "even, $name with the validator of the previous response gets $status";
    }
    is $server->head('/150')->field('Cache-Control'), 'no-cache', 'even: Cache-Control is no-cache';

    $server->stop;

    $server = start_server(options => [qw(--service sized --max-age 3600)]);
    is $server->get('/101')->field('Cache-Control'), 'max-age=3600', '--max-age sets Cache-Control of documents of an odd size';
    is $server->get('/101')->field('ETag') =~ s/101/151/r, $etag, 'a second server has the same ETags';
    $server->stop;
    $server = start_server(options => [qw(--service sized --max-age 0)]);
    is $server->get('/101')->field('Cache-Control'), 'max-age=0', '--max-age 0 is allowed';
    $server->stop;

    # The service needs no directory.
    my $empty = scratch();
    $server = start_server(options => [qw(--service sized)], directory => "$empty", sandbox => !sanitized());
    is $server->get('/100')->{status}, 200, 'the service runs in an empty directory';
    $server->stop(warnings => qr/sandbox|landlock/i);

    for my $wrong (['--max-age', '-1'], ['--max-age', 'x'], ['--max-age', '1.5'], ['--service', 'none']) {
        my $end = run_server(@$wrong, 0);
        is $end->{status}, 2, "@$wrong is refused with exit status 2";
        like $end->{err}, qr/^\S+: \Q$wrong->[0]\E .*\n\z/, "@$wrong is refused with one line that names it";
    }
});

done_testing;
