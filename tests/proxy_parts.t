#!/usr/bin/perl
# Parts in the cache of the proxy (RFC 9111, sections 3.3 and 3.4): a 206 is stored, joined with others of the same ETag, and answers
# later requests for ranges; where its bytes end too early, the origin is asked for the rest.
use v5.36;
use FindBin;
use lib "$FindBin::Bin/lib";
use Harness;
use Origin;
use ProxyFields;

my $origin = Origin->new;
my $all    = join '', map { chr(97 + $_ * 7 % 26) } 0 .. 999;
my ($proxy, $cache);
my $number = 0;

sub bytes ($first, $last) { return substr $all, $first, $last - $first + 1 }

# The response of an origin with these bytes. A field whose value is undef is left out.
sub part ($first, $last, %fields) {
    my %all = (%fresh, ETag => '"a"', 'Content-Range' => "bytes $first-$last/1000", %fields);
    return response(206, bytes($first, $last), %all);
}

sub whole (%fields) {
    my %all = (%fresh, ETag => '"a"', %fields);
    return response(200, $all, %all);
}

sub get ($path, $range, @fields) { return $proxy->get($origin->url($path), defined $range ? (Range => "bytes=$range") : (), @fields) }

# Plays responses at a new path, asks for a range, and returns the path.
sub prepare ($range, @responses) {
    my $path = '/part' . ++$number;
    $origin->play($path, @responses);
    get($path, $range);
    return $path;
}

# Tests a response that has these bytes.
sub is_range ($response, $first, $last, $status, $name) {
    is $response->{status}, 206, "$name: 206";
    is $response->field('Content-Range'), "bytes $first-$last/1000", "$name: Content-Range";
    ok $response->{body} eq bytes($first, $last), "$name: the bytes" or diag($response->{body});
    like cache_status($response), $status, "$name: Cache-Status";
}

my $hit = qr/^hit/;

# Returns the values of a field of the last request for a path.
sub asked ($path, $field) { return join '|', (($origin->requests($path))[-1] =~ /^\Q$field\E: (.*?)\r$/mg) }

each_server(sub ($model) {
    my $place = scratch();
    $cache = "$place/cache";
    $proxy = start_server(options => ['--service', 'proxy', '--cache', $cache]);

    # --- one part ---
    my $path = '/part' . ++$number;
    $origin->play($path, part(100, 199), part(300, 399), whole());
    is_range(get($path, '100-199'), 100, 199, qr/^fwd=uri-miss; fwd-status=206; stored/, 'the first request');
    is_range(get($path, '100-199'), 100, 199, $hit, 'the same range again');
    is_range(get($path, '120-150'), 120, 150, $hit, 'a range of the part');
    is_range(get($path, '120-150', 'If-Range' => '"a"'), 120, 150, $hit, 'a range of the part, with If-Range');
    is $origin->count($path), 1, 'a range of the part: the origin is asked once';
    is_range(get($path, '300-399'), 300, 399, qr/^fwd=uri-miss/, 'a range elsewhere');
    is $origin->count($path), 2, 'a range elsewhere: the origin is asked';
    my $response = get($path, undef);
    is $response->{status}, 200, 'a request without Range: 200';
    is asked($path, 'Range'), '', 'a request without Range: the origin is asked for all';
    ok $response->{body} eq $all, 'a request without Range: the whole body';
    is_range(get($path, '0-9'), 0, 9, $hit, 'a range of the whole response');
    is $origin->count($path), 3, 'a range of the whole response: the origin is not asked';

    $path = prepare('900-999', part(900, 999));
    is_range(get($path, '-50'), 950, 999, $hit, 'the last bytes of the part');
    is_range(get($path, '990-'), 990, 999, $hit, 'an open range of the part');
    like cache_status(get($path, '0-1,990-999')), qr/^fwd/, 'two ranges: the origin is asked';

    # --- joining ---
    $path = prepare('0-99', part(0, 99), part(100, 149), part(150, 299));
    is_range(get($path, '50-149'), 50, 149, qr/^fwd=partial; fwd-status=206; stored/, 'the end is missing');
    is asked($path, 'Range'), 'bytes=100-149', 'the end is missing: the origin is asked for it';
    is asked($path, 'If-Range'), '"a"', 'the end is missing: if nothing has changed';
    is_range(get($path, '0-149'), 0, 149, $hit, 'both together');
    is_range(get($path, '149-299'), 149, 299, qr/^fwd=partial/, 'all but a byte is missing');
    is_range(get($path, '0-299'), 0, 299, $hit, 'all three together');
    is $origin->count($path), 3, 'all three together: the origin was asked for each byte once';
    $path = prepare('100-199', part(100, 199), part(50, 120));
    is_range(get($path, '50-120'), 50, 120, qr/^fwd=uri-miss/, 'the beginning is missing');
    is asked($path, 'Range'), 'bytes=50-120', 'the beginning is missing: the origin is asked for the range';
    is_range(get($path, '60-190'), 60, 190, $hit, 'the beginning is missing: joined');
    $path = prepare('100-199', part(100, 199), part(0, 299), part(400, 499));
    get($path, '0-299');
    is_range(get($path, '0-299'), 0, 299, $hit, 'a larger part takes the place of a smaller one');
    get($path, '400-499');
    is_range(get($path, '400-499'), 400, 499, $hit, 'a part with a gap takes the place of the old one');

    # --- what does not fit together ---
    $path = prepare('0-99', part(0, 99), part(100, 149, ETag => '"b"'), part(50, 149, ETag => '"b"'));
    is_range(get($path, '50-149'), 50, 149, qr/^fwd=/, 'another ETag');
    is asked($path, 'Range'), 'bytes=50-149', 'another ETag: the origin is asked for the whole range';
    is_range(get($path, '50-149'), 50, 149, $hit, 'another ETag: the new part is stored');
    $path = prepare('0-99', part(0, 99), whole(ETag => '"b"'));
    $response = get($path, '50-149');
    is $response->{status}, 200, 'the whole response instead of the rest: it is sent';
    ok $response->{body} eq $all, 'the whole response instead of the rest: all bytes';
    is_range(get($path, '50-149'), 50, 149, $hit, 'the whole response instead of the rest: it is stored');
    for my $what (['another range', part(101, 149)], ['less than was asked for', part(100, 140)],
        ['another length', part(100, 149, 'Content-Range' => 'bytes 100-149/1001')],
        ['a 416', response(416, 'none', 'Content-Range' => 'bytes */100')], ['a 304', response(304, undef, ETag => '"a"')]) {
        my ($name, $strange) = @$what;
        $path = prepare('0-99', part(0, 99), $strange, part(50, 149));
        is_range(get($path, '50-149'), 50, 149, qr/^fwd=/, "$name instead of the rest");
        is $origin->count($path), 3, "$name instead of the rest: the origin is asked for all of it";
    }
    $path = prepare('0-99', part(0, 99), response(503, 'down'));
    is get($path, '50-149')->{status}, 503, 'an error instead of the rest: it is sent';
    is_range(get($path, '0-99'), 0, 99, $hit, 'an error instead of the rest: the part stays');

    # --- a rest that breaks off ---
    $path = prepare('0-99', part(0, 99), [@{ response(206, undef, %fresh, ETag => '"a"', 'Content-Range' => 'bytes 100-149/1000', 'Content-Length' => 50) }, bytes(100, 119), \''], part(100, 149));
    my $client = $proxy->connect;
    $client->send(request(GET => $origin->url($path), Range => 'bytes=50-149'));
    my $sent = $client->drain;
    like $sent, qr/^HTTP\/1.1 206 .*^Content-Length: 100\r$/ms, 'a rest that breaks off: the length is that of the range';
    my $came = $sent =~ s/.*?\r\n\r\n//sr;
    ok length $came < 100 && $came eq substr(bytes(50, 149), 0, length $came), 'a rest that breaks off: the client sees that it is short' or diag($sent);
    $client->close;
    is_range(get($path, '50-149'), 50, 149, qr/^fwd=partial/, 'a rest that breaks off: the next request gets it');

    # --- what is not stored ---
    my %bad = (
        'an unknown length' => part(0, 99, 'Content-Range' => 'bytes 0-99/*'),
        'an end before the beginning' => part(0, 99, 'Content-Range' => 'bytes 99-0/1000'),
        'an end behind the whole' => part(0, 99, 'Content-Range' => 'bytes 0-99/99'),
        'another length than that of the body' => part(0, 99, 'Content-Range' => 'bytes 0-98/1000'),
        'another unit' => part(0, 99, 'Content-Range' => 'items 0-99/1000'),
        'a number that is too large' => part(0, 99, 'Content-Range' => 'bytes 0-99/99999999999999999999'),
        'a sign' => part(0, 99, 'Content-Range' => 'bytes +0-99/1000'),
        'no Content-Range' => part(0, 99, 'Content-Range' => undef),
        'several parts' => part(0, 99, 'Content-Range' => undef, 'Content-Type' => 'multipart/byteranges; boundary=x'),
        'a weak ETag' => part(0, 99, ETag => 'W/"a"'),
        'no ETag' => part(0, 99, ETag => undef, 'Last-Modified' => http_date(time - 10_000)),
        'Vary' => part(0, 99, Vary => 'Accept-Language'),
        'no-store' => part(0, 99, 'Cache-Control' => 'no-store'),
        'a stale response' => part(0, 99, Age => 100),
    );
    for my $name (sort keys %bad) {
        $path = prepare('0-99', $bad{$name}, part(0, 99));
        get($path, '0-99');
        is $origin->count($path), 2, "$name: the origin is asked again";
    }
    $path = '/part' . ++$number;
    $origin->play($path, part(0, 99));
    get($path, '0-99', Authorization => 'Basic eDp5');
    get($path, '0-99');
    is $origin->count($path), 2, 'a request with Authorization: the part is not stored';

    # --- conditions of the client ---
    $path = prepare('0-99', part(0, 99), whole());
    is get($path, '0-9', 'If-Range' => '"other"')->{status}, 200, 'If-Range with another ETag: the origin is asked';
    $path = prepare('0-99', part(0, 99), response(304, undef, ETag => '"a"'));
    is get($path, '0-9', 'If-None-Match' => '"a"')->{status}, 304, 'If-None-Match: the origin is asked';
    $path = prepare('0-99', part(0, 99), part(0, 9));
    get($path, '0-9', 'Cache-Control' => 'no-cache');
    is $origin->count($path), 2, 'no-cache: the origin is asked';
    $path = prepare('0-99', part(0, 99));
    is get($path, '50-149', 'Cache-Control' => 'only-if-cached')->{status}, 504, 'only-if-cached: a range that is not there whole is 504';
    is_range(get($path, '0-9', 'Cache-Control' => 'only-if-cached'), 0, 9, $hit, 'only-if-cached: a range that is there');

    # --- the end of parts ---
    $path = prepare('0-99', part(0, 99), response(204, undef), part(0, 99));
    $proxy->exchange(request(DELETE => $origin->url($path), Connection => 'close'), 'DELETE');
    like cache_status(get($path, '0-99')), qr/^fwd=uri-miss/, 'a DELETE removes the part';
    unlink glob "$cache/[ep]*";
    $path = prepare('0-99', part(0, 99));
    for my $file (glob "$cache/p*") {
        my $content = slurp($file);
        substr($content, index($content, bytes(0, 99)) + 20, 1) ^.= "\x04";
        spit($file, $content);
    }
    is_range(get($path, '0-99'), 0, 99, qr/^fwd=uri-miss/, 'a damaged part: the origin is asked');
    is_range(get($path, '0-99'), 0, 99, $hit, 'a damaged part: it is stored again');
    $proxy->stop(%few);

    $proxy = start_server(options => ['--service', 'proxy', '--cache', $cache]);
    is_range(get($path, '10-19'), 10, 19, $hit, 'a part survives a restart');
    $proxy->stop(%few);
});

done_testing;
