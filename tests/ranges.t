#!/usr/bin/perl
# Byte ranges, single and multiple: exact bytes, exact multipart bodies, and no body much longer than the file.
use v5.36;
use FindBin;
use lib "$FindBin::Bin/lib";
use Harness;

my $content = join '', map { chr(($_ * 7 + ($_ >> 8)) % 256) } 0 .. 99_999;
my $root = tree('file.bin' => $content, 'ten.txt' => '0123456789', 'empty.txt' => '');

# Range of ten.txt => [[first, last]] of a 206; [] is a 416, undef is a 200 with the whole file
my %table = (
    'bytes=0-0'          => [[0, 0]],
    'bytes=0-9'          => [[0, 9]],
    'bytes=0-'           => [[0, 9]],
    'bytes=9-'           => [[9, 9]],
    'bytes=3-5'          => [[3, 5]],
    'bytes=3-99'         => [[3, 9]],
    'bytes=0-18446744073709551615' => [[0, 9]],
    'bytes=-1'           => [[9, 9]],
    'bytes=-10'          => [[0, 9]],
    'bytes=-99'          => [[0, 9]],
    'bytes=007-008'      => [[7, 8]],
    'Bytes=0-0'          => [[0, 0]],
    'bytes=0-4,3-7'      => [[0, 7]],
    'bytes=3-7,0-4'      => [[0, 7]],
    'bytes=0-4,5-9'      => [[0, 9]],
    'bytes=0-9,0-9'      => [[0, 9]],
    'bytes=0-,0-,0-'     => [[0, 9]],
    'bytes=0-9,-1,3-'    => [[0, 9]],
    'bytes=0-0,99-'      => [[0, 0]],
    'bytes=99-,0-0'      => [[0, 0]],
    'bytes=0-0,-0'       => [[0, 0]],
    'bytes=10-'          => [],
    'bytes=10-20'        => [],
    'bytes=99999999999-' => [],
    'bytes=18446744073709551616-' => [],
    'bytes=99999999999999999999999-' => [],
    'bytes=0-99999999999999999999999' => [[0, 9]],
    'bytes=-0'           => [],
    'bytes=10-,20-30'    => [],
    map({ $_ => undef } 'bytes=', 'bytes', '=0-1', 'bytes=-', 'bytes=,', 'bytes=a-b', 'bytes=1', 'bytes=5-3', 'bytes=0-1-2',
        'bytes=--1', 'bytes=+0-1', 'bytes=0x0-1', 'bytes=0 - 1', 'bytes=0-1;2-3', 'bytes=0-0,5-3', 'bytes=0-0,x',
        'bytes 0-1', 'lines=0-1', 'none', 'bytes=0-99999999999999999999999x',
        'bytes=0.0-1', 'bytes =0-1'),
);

# Range of file.bin => the parts. Ranges whose gap is shorter than the head of a part are merged.
my %parts = (
    'bytes=0-0,5000-5000'            => [[0, 0], [5000, 5000]],
    'bytes=0-0, 5000-5000'           => [[0, 0], [5000, 5000]],
    'bytes= 0-0 , 5000-5000 '        => [[0, 0], [5000, 5000]],
    'bytes=0-0,,5000-5000,'          => [[0, 0], [5000, 5000]],
    'bytes=5000-5009,0-9'            => [[5000, 5009], [0, 9]],
    'bytes=0-1,-2'                   => [[0, 1], [99_998, 99_999]],
    'bytes=0-99,100-199,9000-'       => [[0, 199], [9000, 99_999]],
    'bytes=0-99,50-199,9000-9000'    => [[0, 199], [9000, 9000]],
    'bytes=9-9,3000-3009,99999-'     => [[9, 9], [3000, 3009], [99_999, 99_999]],
    'bytes=0-0,5000-5000,100000-'    => [[0, 0], [5000, 5000]],
);

each_server(sub ($model) {
    my $server = start_server(root => $root);
    my $ten = '0123456789';

    for my $range (sort keys %table) {
        my $expected = $table{$range};
        my $response = $server->get('/ten.txt', Range => $range);
        if (!defined $expected) {
            is $response->{status}, 200, "Range: $range is ignored and gets 200";
            is $response->{body}, $ten, "Range: $range is ignored and gets the whole file";
        } elsif (!@$expected) {
            is $response->{status}, 416, "Range: $range is refused with 416";
            is $response->field('Content-Range'), 'bytes */10', "Range: $range: Content-Range of the 416 has the size of the file";
        } elsif (@$expected == 1) {
            my ($first, $last) = @{ $expected->[0] };
            is $response->{status}, 206, "Range: $range gets 206";
            is $response->field('Content-Range'), "bytes $first-$last/10", "Range: $range: Content-Range has the first and the last byte";
            is $response->{body}, substr($ten, $first, $last - $first + 1), "Range: $range gets these bytes";
            like $response->field('Content-Type'), qr{^text/plain}, "Range: $range: Content-Type is that of the file";
        }
        is $response->field('ETag'), $server->head('/ten.txt')->field('ETag'), "Range: $range: ETag is that of the file"
            if $response->{status} == 206;
    }

    for my $range (sort keys %parts) {
        my $expected = $parts{$range};
        my $response = $server->get('/file.bin', Range => $range);
        is $response->{status}, 206, "Range: $range gets 206";
        ok !$response->has('Content-Range'), "Range: $range: the head of a multipart response has no Content-Range";
        my @parts = eval { parse_parts($response) };
        is $@, '', "Range: $range: the multipart body is well-formed";
        is_deeply [map { $_->[0]{'content-range'} } @parts], [map { "bytes $_->[0]-$_->[1]/100000" } @$expected],
            "Range: $range: each part has its Content-Range";
        is_deeply [map { $_->[1] } @parts], [map { substr $content, $_->[0], $_->[1] - $_->[0] + 1 } @$expected],
            "Range: $range: each part has its bytes";
        is scalar(grep { $_->[0]{'content-type'} eq 'application/octet-stream' } @parts), scalar @$expected,
            "Range: $range: each part has the Content-Type of the file";
    }

    is $server->get('/ten.txt')->field('Accept-Ranges'), 'bytes', 'a response has Accept-Ranges: bytes';
    is $server->get('/empty.txt', Range => 'bytes=0-')->{status}, 416, 'a range of an empty file is refused with 416';
    is $server->get('/empty.txt', Range => 'bytes=0-')->field('Content-Range'), 'bytes */0', 'a range of an empty file: Content-Range of the 416 has the size 0';
    ok $server->get('/empty.txt', Range => 'bytes=-5')->{status} =~ /^(?:200|416)$/, 'a suffix range of an empty file gets 200 or 416';
    my $head = $server->head('/ten.txt', Range => 'bytes=0-1');
    is $head->{status}, 200, 'HEAD with a Range gets 200';
    is $head->field('Content-Length'), 10, 'HEAD with a Range: Content-Length is that of the whole file';
    is $server->get('/none', Range => 'bytes=0-1')->{status}, 404, 'a range of a missing file gets 404';
    my $twice = $server->get('/ten.txt', Range => 'bytes=0-1', Range => 'bytes=2-3');
    ok $twice->{status} == 200 || $twice->{status} == 400, 'two Range fields get 200 or 400';

    # 32 ranges that are far apart are served. A request for many more is an attack.
    my @spots = map { $_ * 3000 } 0 .. 31;
    my $many = $server->get('/file.bin', Range => 'bytes=' . join ',', map { "$_-" . ($_ + 9) } @spots);
    is $many->{status}, 206, '32 ranges get 206';
    my @parts = eval { parse_parts($many) };
    is_deeply [map { $_->[1] } @parts], [map { substr $content, $_, 10 } @spots], '32 ranges get the bytes of each';

    my $limit = length $content;
    for my $case (
        ['1000 ranges of a byte',              join ',', map { $_ * 100 . '-' . $_ * 100 } 0 .. 999],
        ['1000 times the whole file',          join ',', ('0-') x 1000],
        ['1000 overlapping ranges',            join ',', map { "$_-" . ($_ + 5000) } 0 .. 999],
        ['30 times nearly the whole file',     join ',', map { "$_-" } 0 .. 29],
        ['30 nested ranges',                   join ',', map { $_ * 100 . '-' . (99_999 - $_ * 100) } 0 .. 29],
        ['suffixes of all lengths',            join ',', map { "-$_" } 1 .. 1000],
        ['ranges of everything, with gaps',    join ',', map { $_ * 3300 . '-' . ($_ * 3300 + 3298) } 0 .. 29],
    ) {
        my ($name, $ranges) = @$case;
        my $response = $server->get('/file.bin', Range => "bytes=$ranges");
        my @got = $response->{status} == 206 && $response->field('Content-Type') =~ /multipart/ ? parse_parts($response) : ();
        ok $response->{status} == 200 || $response->{status} == 206, "$name: the status is 200 or 206";
        cmp_ok length($response->{body}), '<=', $limit + 300 * (@got + 1), "$name: the body is no longer than the file and the heads of the parts";
        if ($response->{status} == 200) {
            ok $response->{body} eq $content, "$name: a 200 has the whole file";
        } elsif (!@got) {
            my ($first, $last) = $response->field('Content-Range') =~ /^bytes (\d+)-(\d+)/;
            ok $response->{body} eq substr($content, $first, $last - $first + 1), "$name: a 206 with one range has its bytes";
        } else {
            my @wrong = grep {
                my ($first, $last) = $_->[0]{'content-range'} =~ /^bytes (\d+)-(\d+)/;
                $_->[1] ne substr $content, $first, $last - $first + 1
            } @got;
            is scalar(@wrong), 0, "$name: each part of a 206 has its bytes";
        }
    }

    my @responses = $server->exchange(request(GET => '/ten.txt', Range => 'bytes=0-0,5-5')
            . request(GET => '/file.bin', Range => 'bytes=0-0,5000-5000')
            . request(GET => '/ten.txt', Range => 'bytes=10-') . request(GET => '/file.bin', Range => 'bytes=99990-')
            . request(GET => '/ten.txt', Connection => 'close'));
    is_deeply [map { $_->{status} } @responses], [206, 206, 416, 206, 200], 'requests with ranges on one connection get their responses in order';
    ok $responses[3]{body} eq substr($content, 99_990), 'bytes=99990- gets the end of the file';

    my @boundaries = map {
        $server->get('/file.bin', Range => 'bytes=0-0,5000-5000')->field('Content-Type') =~ /boundary=(.+)/ ? $1 : ()
    } 1 .. 5;
    is scalar(@boundaries), 5, 'each multipart response has a boundary';
    ok !grep({ $content =~ /\Q$_\E/ } @boundaries), 'the boundary of a multipart response does not occur in the file';
    $server->stop;
});

done_testing;
