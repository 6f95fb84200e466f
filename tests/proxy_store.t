#!/usr/bin/perl
# The cache as a store: one fetch for simultaneous requests; whole entries although clients leave, servers crash and two servers
# write; bounded memory and disk.
use v5.36;
use FindBin;
use lib "$FindBin::Bin/lib";
use Harness;
use Origin;
use ProxyFields;

my $origin = Origin->new;

sub start_proxy ($cache, %how) {
    return start_server(%how, options => ['--service', 'proxy', '--cache', $cache, @{ $how{options} // [] }]);
}

sub ask_for ($path) { return request(GET => $origin->url($path), Connection => 'close') }


# Damages one byte of the entry for that path, at that place of its body.
sub damage ($cache, $path, $body, $place) {
    for my $file (glob "$cache/e*") {
        my $content = slurp($file);
        next if $content !~ /^.{40,200}?\Q$path\E/s || (my $start = index $content, $body) < 0;
        substr($content, $start + $place, 1) ^= "\x04";
        spit($file, $content);
        return 1;
    }
    return 0;
}

sub entries ($cache) { return scalar(() = glob "$cache/e*") }
sub unfinished ($cache) { return scalar(() = glob "$cache/t*") }

each_server(sub ($model) {
    my $scratch = scratch();
    my $cache   = "$scratch/cache";
    my $big     = substr +(join '', map { chr($_ * 11 % 253) } 1 .. 253) x 2000, 0, 400_000;
    my $proxy   = start_proxy($cache);
    is sprintf('%o', (stat $cache)[2] & 07777), '700', 'the directory of the cache is private';

    # --- one fetch for simultaneous requests ---
    if ($model->{single}) {
        skip_case('the model serves one client at a time');
    } else {
        my $many = 4;
        $origin->play('/many', [\'many', @{ response(200, 'for all', %fresh) }], response(200, 'again', %fresh));
        my @clients = map { my $client = $proxy->connect; $client->send(ask_for('/many')); $client } 1 .. $many;
        ok scalar until_true(sub { $origin->count('/many') == 1 }), 'a miss of many clients: one request reaches the origin';
        ok !(grep { !$_->open } @clients), 'a miss of many clients: all wait';
        $origin->open_gate('many');
        my @responses = map { $_->response } @clients;
        is scalar(grep { $_->{body} eq 'for all' } @responses), $many, 'a miss of many clients: all get the response';
        is $origin->count('/many'), 1, 'a miss of many clients: one fetch serves all';
        is scalar(grep { cache_status($_) =~ /^fwd=uri-miss; collapsed|^hit/ } @responses), $many - 1, 'a miss of many clients: Cache-Status says collapsed or hit';
        $_->close for @clients;

        $origin->play('/stale', response(200, 'old', %fresh, Age => 100, ETag => '"1"'), [\'stale', @{ response(304, undef, %fresh, ETag => '"1"') }]);
        $proxy->get($origin->url('/stale'));
        @clients = map { my $client = $proxy->connect; $client->send(ask_for('/stale')); $client } 1 .. $many;
        ok scalar until_true(sub { $origin->count('/stale') == 2 }), 'a stale entry of many clients: one validation reaches the origin';
        $origin->open_gate('stale');
        is scalar(grep { $_->response->{body} eq 'old' } @clients), $many, 'a stale entry of many clients: all get the entry';
        is $origin->count('/stale'), 2, 'a stale entry of many clients: one validation serves all';
        $_->close for @clients;

        $origin->play('/private', [\'private', @{ response(200, 'mine', 'Cache-Control' => 'private') }]);
        @clients = map { my $client = $proxy->connect; $client->send(ask_for('/private')); $client } 1 .. $many;
        ok scalar until_true(sub { $origin->count('/private') == 1 }), 'a private response of many clients: one request reaches the origin first';
        $origin->open_gate('private');
        is scalar(grep { $_->response->{body} eq 'mine' } @clients), $many, 'a private response of many clients: each gets a response';
        is $origin->count('/private'), $many, "a private response of many clients: each client's request reaches the origin";
        $_->close for @clients;
        @clients = map { my $client = $proxy->connect; $client->send(ask_for('/private')); $client } 1 .. $many;
        ok scalar until_true(sub { $origin->count('/private') == 2 * $many }), 'a private response of many clients: the next clients do not wait for each other';
        $_->drain for @clients;
        $_->close for @clients;

        # When the fetch of one client fails, it has failed all who have waited for it, and the next client fetches.
        $origin->play('/dead', [\'dead', \''], response(200, 'second', %fresh));
        @clients = map { my $client = $proxy->connect; $client->send(ask_for('/dead')); $client } 1 .. 2;
        ok scalar until_true(sub { waiting($cache) == 1 }), 'an origin that breaks off: one client waits for the fetch of another';
        $origin->open_gate('dead');
        my @got = map { $_->response->{status} } @clients;
        is "@got", '502 502', 'an origin that breaks off: both clients get 502';
        is $proxy->get($origin->url('/dead'))->{body}, 'second', 'an origin that breaks off: the request of the next client reaches the origin';
        $_->close for @clients;
    }

    # --- clients that leave, and slow clients ---
    $origin->play('/left', [@{ response(200, undef, %fresh, 'Content-Length' => 400_000) }, substr($big, 0, 1000), \'left', substr $big, 1000]);
    my $client = $proxy->connect;
    $client->send(ask_for('/left'));
    ok scalar until_true(sub { $client->fill(1); $client->pending =~ /\r\n\r\n./s }), 'a client that leaves: it has read the beginning of a response';
    unlike $client->pending, qr/; stored/, 'a client that leaves: the head does not say that the response is stored, which it is not yet';
    $client->close;
    $origin->open_gate('left');
    ok scalar until_true(sub { !unfinished($cache) && entries($cache) }), 'a client that leaves: the entry becomes whole';
    my $response = $proxy->get($origin->url('/left'));
    ok $response->{body} eq $big, 'a client that leaves: the next client gets the whole response';
    is $origin->count('/left'), 1, 'a client that leaves: the next client is served from the cache';
    $origin->play('/both', [@{ response(200, undef, %fresh, 'Content-Length' => 400_000) }, substr($big, 0, 1000), \''], response(200, 'whole', %fresh));
    $client = $proxy->connect;
    $client->converse(ask_for('/both'));
    $client->close;
    is $proxy->get($origin->url('/both'))->{body}, 'whole', 'a response that breaks off is not stored';
    is unfinished($cache), 0, 'a response that breaks off leaves no unfinished file';
    my $huge = $big x 20;
    $origin->play('/slow', response(200, $huge, %fresh));
    $client = $proxy->connect;
    $client->send(ask_for('/slow'));
    if ($model->{single}) {
        skip_case('a slow client and another one: the model serves one client at a time');
    } else {
        ok scalar until_true(sub { !unfinished($cache) && $proxy->get($origin->url('/slow'), 'Cache-Control' => 'only-if-cached')->{status} == 200 }),
            'a client that does not read: the entry becomes whole';
    }
    ok $client->response->{body} eq $huge, 'a slow client gets the whole response';
    $client->close;
    for my $how ('ends', 'resets') {
        my $path = "/breaks-$how";
        $origin->play($path, [@{ response(200, undef, %fresh, 'Content-Length' => 9_000_000) }, $huge, \"!$how", $how eq 'resets' ? \'' : ()]);
        $client = $proxy->connect;
        $client->send(ask_for($path));
        $origin->has_come($how);
        ok +(split /\r\n\r\n/, $client->drain, 2)[1] eq $huge, "an origin that $how the connection after 8 MB of 9 MB: a slow client gets the 8 MB";
        $client->close;
    }
    $proxy->stop(%few);

    # --- restart, crash, two servers ---
    my $before = $origin->count('/left');
    $proxy = start_proxy($cache);
    is cache_status($proxy->get($origin->url('/left'))), 'hit', 'entries survive a restart';
    my $second = start_proxy($cache);
    is cache_status($second->get($origin->url('/left'))), 'hit', 'two servers share a directory';
    $origin->play('/shared', response(200, 'x', %fresh));
    $second->get($origin->url('/shared'));
    is cache_status($proxy->get($origin->url('/shared'))), 'hit', 'an entry that one server stores is a hit for the other';
    $second->stop(%few);
    $origin->play('/crash', [@{ response(200, undef, %fresh, 'Content-Length' => 400_000) }, substr($big, 0, 1000), \'never'], response(200, 'whole', %fresh));
    $client = $proxy->connect;
    $client->send(ask_for('/crash'));
    ok scalar until_true(sub { $client->fill(1); $client->pending =~ /\r\n\r\n./s }), 'kill -9: an entry is being written';
    is unfinished($cache), 1, 'kill -9: the unfinished entry has a file';
    my $group = $proxy->pid;
    kill KILL => map { $_->[0] } group_processes($group);
    $proxy->discard;
    $client->close;
    ok scalar until_true(sub { !grep { $_->[1] ne 'Z' } group_processes($group) }), 'kill -9: all processes of the server end';
    $proxy = start_proxy($cache);
    is unfinished($cache), 0, 'kill -9: the next server removes the unfinished file';
    is $proxy->get($origin->url('/crash'))->{body}, 'whole', 'kill -9: no incomplete entry and no lock remains';
    is cache_status($proxy->get($origin->url('/left'))), 'hit', 'kill -9: the other entries remain';

    # --- damage ---
    $origin->play('/damage', response(200, 'first body', %fresh), response(200, 'second body', %fresh));
    $proxy->get($origin->url('/damage'));
    for my $file (glob "$cache/e*") {
        my $content = slurp($file);
        spit($file, $content) if $content =~ s/first body(?=.{8}\z)/f1rst body/s;
    }
    is $proxy->get($origin->url('/damage'))->{body}, 'second body', 'a damaged entry is not used';
    is $proxy->get($origin->url('/damage'))->{body}, 'second body', 'a damaged entry is replaced';

    # A process keeps the entries that it has used, as long as their files are the same.
    $origin->play('/lately', map { response(200, "$_ text", %fresh) } qw(first second));
    $proxy->get($origin->url('/lately'));
    utime time, 1_000_000, glob "$cache/e*";
    is $proxy->get($origin->url('/lately'))->{body}, 'first text', "an entry that was used lately is used again ($_)" for 1 .. 3;
    for my $file (glob "$cache/e*") {
        my $content = slurp($file);
        spit($file, $content) if $content =~ s/first text/f1rst text/;
    }
    is $proxy->get($origin->url('/lately'))->{body}, 'second text', 'an entry that was used lately and is damaged is not used';

    # A head of 30 kB.
    my %long = map { ("X-$_" => 'v' x 500) } 1 .. 60;
    $origin->play('/head', response(200, 'long head', %fresh, %long, ETag => '"h"'));
    $proxy->get($origin->url('/head'));
    my $long = $proxy->get($origin->url('/head'));
    is cache_status($long), 'hit', 'a head of 30 kB: the entry is a hit';
    is $long->{body}, 'long head', 'a head of 30 kB: the client gets the body';
    is scalar(grep { $long->field("X-$_") eq 'v' x 500 } 1 .. 60), 60, 'a head of 30 kB: the client gets each field';
    is $proxy->get($origin->url('/head'), 'If-None-Match' => '"h"')->{status}, 304, 'a head of 30 kB: the client gets a 304';
    is scalar(grep { $_->{body} eq 'long head' } $proxy->exchange(request(GET => $origin->url('/head')) x 2 . ask_for('/head'), ('GET') x 3)), 3, 'a head of 30 kB: three in a pipeline';

    # A large body is checked block by block, as it is sent.
    my $where = 300_000;
    my @twice = map { response(200, $_, %fresh, ETag => '"b"') } $big, 'anew';
    $origin->play('/blocks', @twice);
    $proxy->get($origin->url('/blocks'));
    ok damage($cache, '/blocks', $big, $where), 'a damaged block: there is one';
    is $proxy->get($origin->url('/blocks'), 'If-None-Match' => '"b"')->{status}, 304, 'a damaged block: a 304 does not need it';
    is $proxy->get($origin->url('/blocks'), Range => 'bytes=10-19')->{body}, substr($big, 10, 10), 'a damaged block: a range of another block is sent';
    $client = $proxy->connect;
    $client->send(ask_for('/blocks'));
    my $sent = $client->drain =~ s/.*?\r\n\r\n//sr;
    ok length $sent <= $where && $sent eq substr($big, 0, length $sent), 'a damaged block: no damaged byte is sent';
    cmp_ok length $sent, '>=', $where - 40_000, 'a damaged block: the blocks before it are sent';
    $client->close;
    is $proxy->get($origin->url('/blocks'))->{body}, 'anew', 'a damaged block: the next request reaches the origin';
    $origin->play('/range', @twice);
    $proxy->get($origin->url('/range'));
    ok damage($cache, '/range', $big, $where), 'a damaged range: there is one';
    is $proxy->get($origin->url('/range'), Range => "bytes=$where-$where")->{body}, 'anew', 'a damaged range: the request reaches the origin';
    $origin->play('/cut', response(200, 'cut', %fresh));
    truncate("$cache/account-2", $_) or die "truncate: $!\n" for 5000, 0;
    is $proxy->get($origin->url('/damage'))->{body}, 'second body', 'a truncated account file: the entries are still found';
    $proxy->get($origin->url('/cut'));
    is cache_status($proxy->get($origin->url('/cut'))), 'hit', 'a truncated account file: new entries are stored';
    $proxy->stop(%few);

    # --- a directory that is emptied or removed ---
    my $gone = "$scratch/gone";
    $proxy = start_proxy($gone);
    $origin->play('/gone', response(200, 'x', %fresh));
    $proxy->get($origin->url('/gone'));
    unlink glob "$gone/*";
    like cache_status($proxy->get($origin->url('/gone'))), qr/^fwd=uri-miss; fwd-status=200; stored/, 'an emptied directory: a request is a miss, and stored';
    is cache_status($proxy->get($origin->url('/gone'))), 'hit', 'an emptied directory: the next request is a hit';
    $proxy->stop(%few);

    # --- limits ---
    my $small = "$scratch/small";
    $proxy = start_proxy($small, options => ['--cache-size', '1M']);
    for my $number (1 .. 20) {
        $origin->play("/fill$number", response(200, 'x' x 100_000, %fresh));
        $proxy->get($origin->url("/fill$number"));
        $proxy->get($origin->url('/fill1'));
    }
    my $size;
    until_true(sub { $size = 0; $size += -s for glob "$small/e*"; $size <= 1024 * 1024 });
    cmp_ok $size, '<=', 1024 * 1024, '--cache-size: the cache does not stay above it';
    cmp_ok $size, '>=', 512 * 1024, '--cache-size: the cache uses more than half of it';
    is cache_status($proxy->get($origin->url('/fill1'))), 'hit', '--cache-size: an entry that is used often stays';
    like cache_status($proxy->get($origin->url('/fill2'))), qr/^fwd=uri-miss/, '--cache-size: the least recently used entry was evicted';
    $origin->play('/toolarge', response(200, $huge, %fresh));
    ok $proxy->get($origin->url('/toolarge'))->{body} eq $huge, '--cache-size: a response that is too large is forwarded whole';
    $origin->play('/toolong', [@{ response(200, undef, %fresh, 'Content-Length' => undef) }, $huge]);
    ok $proxy->get($origin->url('/toolong'))->{body} eq $huge, '--cache-size: a response that is too large and without a length is forwarded whole';
    is unfinished($small), 0, '--cache-size: a response that is too large leaves no unfinished file';
    $proxy->stop(%few);

    # While entries are written, the cache may be above its size by half. Their heads come on top, and a piece of each:
    # when the files are counted, a piece that its writer has counted but not written yet is missing, and another writer
    # may get its room.
    if ($model->{single}) {
        skip_case('many fetches at once: the model serves one client at a time');
    } else {
        my ($crowd, $many, $half, $piece_most) = ("$scratch/crowd", 8, substr($huge, 0, 480_000), 32_768);
        my $used = sub { my $bytes = 0; $bytes += -s $_ // 0 for glob "$crowd/[etpr]*"; return $bytes };
        $proxy = start_proxy($crowd, options => ['--cache-size', '1M']);
        for my $number (1 .. $many) {
            $origin->play("/crowd$number", [@{ response(200, undef, %fresh, 'Content-Length' => length $half) }, substr($half, 0, 470_000), \'crowd', substr $half, 470_000]);
        }
        my @clients = map { my $client = $proxy->connect; $client->send(ask_for("/crowd$_")); $client } 1 .. $many;
        is scalar(grep { my $client = $_; until_true(sub { $client->fill(1); length $client->pending >= 470_000 }) } @clients), $many, 'many fetches at once: each client gets what comes';
        my $peak = $used->();
        cmp_ok $peak, '<=', 1.5 * 1024 * 1024 + $many * (1000 + $piece_most), 'many fetches at once: the cache is above its size by half at most';
        cmp_ok $peak, '>', 1024 * 1024, 'many fetches at once: that counts entries that are written';
        $origin->open_gate('crowd');
        is scalar(grep { $_->response->{body} eq $half } @clients), $many, 'many fetches at once: each client gets all of its response';
        $_->close for @clients;
        ok scalar until_true(sub { !unfinished($crowd) && $used->() <= 1024 * 1024 }), 'many fetches at once: then the cache comes down to its size';
        ok scalar until_true(sub { $proxy->get($origin->url('/crowd1')); cache_status($proxy->get($origin->url('/crowd1'))) eq 'hit' }), 'many fetches at once: afterwards entries are stored';
        $proxy->stop(%few);

        # Bodies that are held at first, and then come slowly, are counted once: nothing is removed for them.
        my ($several, $piece) = (9, substr $huge, 0, 99_000);
        $proxy = start_proxy("$scratch/several", options => ['--cache-size', '1M']);
        for my $number (1 .. $several) {
            $origin->play("/several$number", [@{ response(200, undef, %fresh, 'Content-Length' => length $piece) }, substr($piece, 0, 1000), \'first', substr($piece, 1000, 97_000), \'last', substr $piece, 98_000]);
        }
        @clients = map { my $client = $proxy->connect; $client->send(ask_for("/several$_")); $client } 1 .. $several;
        for my $step ([first => 1000], [last => 98_000]) {
            my ($gate, $length) = @$step;
            is scalar(grep { my $client = $_; until_true(sub { $client->fill(1); length $client->pending >= $length }) } @clients), $several, "slow fetches at once: each client gets $length bytes";
            $origin->open_gate($gate);
        }
        is scalar(grep { $_->response->{body} eq $piece } @clients), $several, 'slow fetches at once: each client gets all of its response';
        $_->close for @clients;
        is scalar(grep { cache_status($proxy->get($origin->url("/several$_"))) eq 'hit' } 1 .. $several), $several, 'slow fetches at once: all that fits is stored';
        $proxy->stop(%few);
    }

    # --- a body that was held, and a client that takes only a part of it at first ---
    if ($model->{single}) {
        skip_case('the model serves one client at a time');
    } else {
        my $held = substr $big, 0, 120_000;
        $proxy = start_proxy("$scratch/slow");
        my @crowd = map { $proxy->connect } 1 .. ($model->{limited} ? 0 : 260);    # then the kernel takes less for each client
        $origin->play('/slow', response(200, $held, %fresh));
        my $slow = $proxy->connect(Sockopts => [[Socket::SOL_SOCKET(), Socket::SO_RCVBUF(), 4096]]);
        $slow->send(ask_for('/slow'));
        ok scalar until_true(sub { cache_status($proxy->get($origin->url('/slow'))) eq 'hit' }), 'a client that reads slowly: the response is stored before it has all of it';
        ok $slow->response->{body} eq $held, 'a client that reads slowly: it gets the whole response';
        $_->close for $slow, @crowd;
        $proxy->stop(%few);
    }

    # --- a full disk, played by a limit of the size of files ---
    my $full = "$scratch/full";
    if (command_exists('prlimit') && !sanitized()) {
        $proxy = start_proxy($full, through => ['prlimit', '--fsize=100000']);
        $origin->play('/fits', response(200, 'x' x 50_000, %fresh));
        $proxy->get($origin->url('/fits'));
        is cache_status($proxy->get($origin->url('/fits'))), 'hit', 'a full disk: an entry that fits is stored';
        $origin->play('/full', response(200, $big, %fresh));
        for my $time (1, 2) {
            my $full = $proxy->get($origin->url('/full'));
            ok $full->{body} eq $big, "a full disk: a response that does not fit is forwarded whole ($time)";
            unlike cache_status($full), qr/stored/, "a full disk: the response does not say that it is stored ($time)";
        }
        is $origin->count('/full'), 2, 'a full disk: a response that does not fit is fetched each time';
        my $held = substr $big, 0, 120_000;    # in memory until it is whole, or the origin has to be waited for
        $origin->play('/held', response(200, $held, %fresh));
        my $reply = $proxy->get($origin->url('/held'));
        ok $reply->{body} eq $held, 'a full disk: a response that was held and does not fit is forwarded whole';
        unlike cache_status($reply), qr/stored/, 'a full disk: that response does not say that it is stored';
        $origin->play('/pieces', [@{ response(200, undef, %fresh, 'Content-Length' => 120_000) }, substr($held, 0, 110_000), \'rest', substr $held, 110_000]);
        my $client = $proxy->connect;
        $client->send(ask_for('/pieces'));
        ok scalar until_true(sub { $client->fill(1); length($client->pending) >= 110_000 }), 'a full disk: what does not fit is sent before it is whole';
        $origin->open_gate('rest');
        ok $client->response->{body} eq $held, 'a full disk: the client gets all pieces';
        $client->close;
        is unfinished($full), 0, 'a full disk: no unfinished file remains';
        $proxy->stop(%few);
    } else {
        skip_case('a full disk: without prlimit, or with a sanitizer');
    }

    # --- memory ---
    my $gigantic = 'y' x 8_000_000;
    $origin->play('/gigantic', [@{ response(200, undef, 'Content-Length' => 64_000_000) }, ($gigantic) x 8]);
    $proxy = start_proxy("$scratch/memory", options => ['--stats', "$scratch/stats"]);
    my $curl = run_command('curl', '-s', '-x', $proxy->url, '-o', '/dev/null', '-w', '%{size_download}', $origin->url('/gigantic'));
    is $curl->{out}, 64_000_000, 'a body of 64 MB is forwarded';
    $proxy->stop(%few);
    my ($peak) = slurp("$scratch/stats") =~ /"peak_memory_(?:kib|bytes|kilobytes)":\s*(\d+)/i;
    if (sanitized() || !defined $peak) { skip_case('the peak memory of a sanitized server is not comparable') }
    else                               { cmp_ok $peak, '<', 8000, "a body of 64 MB takes less than 8,000 KiB ($peak KiB)" }

    # --- the sandbox ---
    my $sandboxed = start_proxy("$scratch/sandboxed", sandbox => 1, environment => no_leak_search());
    $origin->play('/box', response(200, 'x', %fresh));
    $sandboxed->get($origin->url('/box'));
    is cache_status($sandboxed->get($origin->url('/box'))), 'hit', 'the sandbox lets the proxy store and serve entries';
    $sandboxed->stop(warnings => qr/limit of \d+ descriptors|sandbox|landlock/i);

    my $run = do { mkdir "$scratch/open"; chmod 0777, "$scratch/open"; run_server('--service', 'proxy', '--cache', "$scratch/open", 0) };
    is $run->{status}, 1, 'a directory that others may write to is refused with exit status 1';
    like $run->{err}, qr/nobody else may write to it/, 'a directory that others may write to is refused with a line that says why';
});

done_testing;
