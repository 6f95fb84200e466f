#!/usr/bin/perl
# Validators and preconditions: Last-Modified, ETag, the five If-* fields, and their precedence.
use v5.36;
use FindBin;
use lib "$FindBin::Bin/lib";
use Harness;

my $time = 784_111_777;    # Sun, 06 Nov 1994 08:49:37 GMT
my $root = tree(
    'page.html' => '<p>page', 'style.css' => 'p {}', 'script.js' => '1', 'data.json' => '{}', 'image.png' => 'P',
    'photo.JPG' => 'J', 'drawing.svg' => '<svg/>', 'note.txt' => "note\n", 'archive.bin' => "\0", 'noending' => 'x',
    'letter.pdf' => '%PDF', 'empty.txt' => '', 'other.txt' => "note\n", 'copy.txt' => "note\n",
);
utime $time, $time, "$root/note.txt", "$root/copy.txt" or die "utime: $!";

my %types = (
    'page.html'   => qr{^text/html(?:;|\z)},        'style.css'  => qr{^text/css(?:;|\z)},
    'script.js'   => qr{^(?:text|application)/javascript(?:;|\z)}, 'data.json' => qr{^application/json(?:;|\z)},
    'image.png'   => qr{^image/png\z},              'photo.JPG'  => qr{^image/jpeg\z},
    'drawing.svg' => qr{^image/svg\+xml(?:;|\z)},   'note.txt'   => qr{^text/plain(?:;|\z)},
    'archive.bin' => qr{^application/octet-stream\z}, 'noending' => qr{^application/octet-stream\z},
    'letter.pdf'  => qr{^application/pdf\z},
);

each_server(sub ($model) {
    my $server = start_server(root => $root);
    like $server->get("/$_")->field('Content-Type'), $types{$_}, "$_ has its Content-Type" for sort keys %types;

    my $plain = $server->get('/note.txt');
    my $etag  = $plain->field('ETag');
    like $etag, qr/^"[\x21\x23-\x7e]+"\z/, 'the ETag is strong and quoted';
    is $plain->field('Last-Modified'), 'Sun, 06 Nov 1994 08:49:37 GMT', 'Last-Modified is the time of the file';
    is $server->get('/note.txt')->field('ETag'), $etag, 'the ETag does not change while the file does not';
    isnt $server->get('/copy.txt')->field('ETag'), $etag, 'another file with the same time and size has another ETag';
    my $clock = time;
    my $date = $server->get('/note.txt')->field('Date');
    ok scalar(grep { http_date($clock + $_) eq $date } -1 .. 60), 'Date is the current time';
    my $fresh = $server->get('/other.txt');
    is $fresh->field('Last-Modified'), http_date((stat "$root/other.txt")[9]), 'Last-Modified of a new file is its modification time';
    ok !$server->get('/none')->has('ETag'), 'an error has no ETag';
    my $empty = $server->get('/empty.txt');
    is $empty->{status}, 200, 'an empty file gets 200';
    is $empty->field('Content-Length'), 0, 'an empty file has Content-Length 0';

    my $same   = http_date($time);
    my $before = http_date($time - 1);
    my $after  = http_date($time + 1);
    my $future = http_date(time + 86_400 * 30);
    my $other  = '"other"';

    my @cases = (
        # If-None-Match compares weakly
        [304, 'If-None-Match' => $etag],
        [304, 'If-None-Match' => "W/$etag"],
        [304, 'If-None-Match' => '*'],
        [304, 'If-None-Match' => "$other, $etag"],
        [304, 'If-None-Match' => "$other,$etag,\"third\""],
        [304, 'If-None-Match' => "$other ,, $etag ,"],
        [304, 'If-None-Match' => "W/\"a\", W/$etag"],
        [304, 'If-None-Match' => "\"a,b\", $etag"],
        [304, 'If-None-Match' => $other, 'If-None-Match' => $etag],
        [200, 'If-None-Match' => $other],
        [200, 'If-None-Match' => '"*"'],
        [200, 'If-None-Match' => $etag =~ s/"//gr],
        [200, 'If-None-Match' => '"x' . ($etag =~ s/"//r)],
        [200, 'If-None-Match' => "\"a, $other\""],
        # If-Modified-Since, in the three formats
        [304, 'If-Modified-Since' => $same],
        [304, 'If-Modified-Since' => $after],
        [200, 'If-Modified-Since' => $before],
        [304, 'If-Modified-Since' => http_date($time, 'rfc850')],
        [200, 'If-Modified-Since' => http_date($time - 1, 'rfc850')],
        [304, 'If-Modified-Since' => http_date($time, 'asctime')],
        [200, 'If-Modified-Since' => http_date($time - 1, 'asctime')],
        [200, 'If-Modified-Since' => 'yesterday'],
        [200, 'If-Modified-Since' => ''],
        [200, 'If-Modified-Since' => '784111777'],
        [200, 'If-Modified-Since' => 'Sun, 06 Nov 1994 08:49:37 PST'],
        [200, 'If-Modified-Since' => 'Sun, 99 Nov 1994 08:49:37 GMT'],
        [200, 'If-Modified-Since' => 'Sun, 06 Xxx 1994 08:49:37 GMT'],
        [200, 'If-Modified-Since' => 'Sun, 06 Nov 1994 25:49:37 GMT'],
        [200, 'If-Modified-Since' => "$same x"],
        # If-None-Match takes precedence over If-Modified-Since
        [200, 'If-None-Match' => $other, 'If-Modified-Since' => $same],
        [304, 'If-None-Match' => $etag,  'If-Modified-Since' => $before],
        # If-Match compares strongly
        [200, 'If-Match' => $etag],
        [200, 'If-Match' => '*'],
        [200, 'If-Match' => "$other, $etag"],
        [412, 'If-Match' => $other],
        [412, 'If-Match' => "W/$etag"],
        [412, 'If-Match' => "W/$etag, $other"],
        # If-Unmodified-Since
        [200, 'If-Unmodified-Since' => $same],
        [200, 'If-Unmodified-Since' => $after],
        [412, 'If-Unmodified-Since' => $before],
        [412, 'If-Unmodified-Since' => http_date($time - 1, 'rfc850')],
        [412, 'If-Unmodified-Since' => http_date($time - 1, 'asctime')],
        [200, 'If-Unmodified-Since' => 'nonsense'],
        # If-Match takes precedence over If-Unmodified-Since
        [200, 'If-Match' => $etag,  'If-Unmodified-Since' => $before],
        [412, 'If-Match' => $other, 'If-Unmodified-Since' => $after],
        # If-Match and If-Unmodified-Since take precedence over the other two
        [412, 'If-Match' => $other, 'If-None-Match' => $etag],
        [304, 'If-Match' => $etag,  'If-None-Match' => $etag],
        [412, 'If-Unmodified-Since' => $before, 'If-None-Match' => $etag],
        [412, 'If-Unmodified-Since' => $before, 'If-Modified-Since' => $same],
        [304, 'If-Unmodified-Since' => $same,   'If-Modified-Since' => $same],
        # Preconditions take precedence over ranges
        [304, 'If-None-Match' => $etag,  Range => 'bytes=0-1'],
        [412, 'If-Match'      => $other, Range => 'bytes=0-1'],
        [206, 'If-Match'      => $etag,  Range => 'bytes=0-1'],
        # If-Range
        [206, 'If-Range' => $etag,     Range => 'bytes=0-1'],
        [200, 'If-Range' => $other,    Range => 'bytes=0-1'],
        [200, 'If-Range' => "W/$etag", Range => 'bytes=0-1'],
        [200, 'If-Range' => '*',       Range => 'bytes=0-1'],
        [206, 'If-Range' => $same,     Range => 'bytes=0-1'],
        [200, 'If-Range' => $after,    Range => 'bytes=0-1'],
        [200, 'If-Range' => $before,   Range => 'bytes=0-1'],
        [206, 'If-Range' => http_date($time, 'rfc850'), Range => 'bytes=0-1'],
        [200, 'If-Range' => 'nonsense', Range => 'bytes=0-1'],
        [200, 'If-Range' => $other,    Range => 'bytes=100-'],
        [200, 'If-Range' => $etag],
    );
    for my $case (@cases) {
        my ($status, @fields) = @$case;
        my $name = join ', ', map { "$fields[2 * $_]: $fields[2 * $_ + 1]" } 0 .. $#fields / 2;
        $name =~ s/\Q$etag\E/ETAG/g;
        for my $method (qw(GET HEAD)) {
            next if $method eq 'HEAD' && grep { $_ eq 'Range' } @fields;
            my $response = $server->exchange(request($method => '/note.txt', @fields, Connection => 'close'), $method);
            my @flaws;
            push @flaws, "status $response->{status}" if $response->{status} != $status;
            push @flaws, "body '$response->{body}'"
                if $response->{body} ne ($method eq 'HEAD' || $status == 304 ? '' : $status == 200 ? "note\n" : $status == 206
                    ? 'no' : $response->{body});
            push @flaws, 'ETag ' . $response->field('ETag') if $status != 412 && $response->field('ETag') ne $etag;
            push @flaws, 'Content-Length is not the size of the file'
                if $status == 304 && $response->has('Content-Length') && $response->field('Content-Length') != 5;
            ok !@flaws, "$method with $name gets $status" or diag(join "\n", @flaws);
        }
    }

    # A modification time of the current second is no strong validator yet.
    my $now = time;
    utime $now + 5, $now + 5, "$root/other.txt";
    is $server->get('/other.txt', 'If-Range' => http_date($now + 5), Range => 'bytes=0-1')->{status}, 200,
        'If-Range with the date of a file that was modified just now gets the whole file';
    my $last = $server->get('/other.txt');
    cmp_ok $last->field('Last-Modified'), 'eq', $last->field('Date'), 'Last-Modified is never later than Date'
        if $last->has('Last-Modified') && $last->field('Last-Modified') ne http_date($now + 5);
    is $server->get('/note.txt', 'If-Modified-Since' => $future)->{status}, 304,
        'If-Modified-Since in the future gets 304';
    is $server->get('/none', 'If-None-Match' => '*')->{status}, 404, 'If-None-Match: * for a missing file gets 404';
    is $server->get('/none', 'If-Match' => '*')->{status}, 404, 'If-Match: * for a missing file gets 404';
    utime $now, $now, "$root/other.txt";

    my $old = $server->get('/copy.txt')->field('ETag');
    spit("$root/copy.txt", "new content\n");
    isnt $server->get('/copy.txt')->field('ETag'), $old, 'a file that has changed has another ETag';
    spit("$root/copy.txt", "note\n");
    utime $time, $time, "$root/copy.txt";

    my @responses = $server->exchange(request(GET => '/note.txt', 'If-None-Match' => $etag)
            . request(GET => '/note.txt', 'If-Match' => $other) . request(GET => '/note.txt', Connection => 'close'));
    is_deeply [map { $_->{status} } @responses], [304, 412, 200], '304 and 412 do not end the connection';
    $server->stop;
});

done_testing;
