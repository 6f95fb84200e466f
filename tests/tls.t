#!/usr/bin/perl
# --tls: HTTPS by OpenSSL.
use v5.36;
use FindBin;
use lib "$FindBin::Bin/lib";
use Harness;
use Origin;
use POSIX ();

my $origin = Origin->new;
my $place  = scratch();
my $serial = 0;

# Makes a certificate with its key, as files that take the place of those before; its serial number.
sub make_certificate ($name, @key) {
    @key = qw(-newkey ec -pkeyopt ec_paramgen_curve:P-256) if !@key;
    my $made = run_command(qw(openssl req -x509 -days 2 -nodes -subj /CN=localhost -addext), "subjectAltName=DNS:localhost,IP:127.0.0.1",
        '-set_serial', ++$serial, @key, '-keyout', "$place/new.key", '-out', "$place/new.pem");
    die "no certificate: $made->{err}\n" if $made->{status} != 0;
    rename "$place/new.key", "$place/$name.key" or die "rename: $!\n";
    rename "$place/new.pem", "$place/$name.pem" or die "rename: $!\n";
    return $serial;
}

sub tls_options ($name) { return ('--tls', '--cert', "$place/$name.pem", '--key', "$place/$name.key") }

my $inputs = 0;

# What a TLS client prints that sends this and reads until the server ends the connection.
sub client ($server, $input, @options) {
    my $file = "$place/input." . ++$inputs;
    spit($file, $input);
    my $run = run_command('sh', '-c', 'exec openssl s_client "$@" <"$0" 2>&1', $file, '-connect', "$server->{host}:$server->{port}",
        '-ign_eof', @options);
    unlink $file;
    return $run->{out};
}

my $last = request(GET => '/small.txt', Connection => 'close');

sub serial_of ($server) {
    my ($text) = client($server, $last) =~ /(-----BEGIN CERTIFICATE-----.*?-----END CERTIFICATE-----)/s or return 'none';
    spit("$place/seen.pem", $text);
    return hex(run_command('openssl', 'x509', '-in', "$place/seen.pem", '-noout', '-serial')->{out} =~ s/serial=|\n//gr);
}

sub curl ($server, $name, @arguments) {
    return run_command(qw(curl --silent --show-error --noproxy *), '--cacert', "$place/$name.pem", @arguments);
}

# A client that shakes hands, and whose last words then all go to the server at once: these, and by TLS that it sends
# no more. If that is to be `cut` it has only the words to say, and what ends is its TCP; `changed`, it comes when /secret
# was asked for, and a bit of it is another one. What the server said after that.
sub hasty_client ($server, $end, $words, @options) {
    my $listener = IO::Socket::IP->new(LocalHost => '127.0.0.1', LocalPort => 0, Listen => 1) or die "listen: $@\n";
    pipe my $from, my $to or die "pipe: $!\n";
    my $said = File::Temp->new;
    my $pid = fork // die "fork: $!\n";
    if ($pid == 0) {
        open STDIN,  '<&', $from;
        open STDOUT, '>&', $said;
        open STDERR, '>&', $said;
        close $to;
        exec 'openssl', 's_client', @options, '-connect', '127.0.0.1:' . $listener->sockport;
    }
    close $from;
    my $near = $listener->accept;
    my $far  = $server->connect;
    my $pass = sub ($from_near, $bytes) { $from_near ? $far->send($bytes) : syswrite $near, $bytes };
    until_true(sub {
        for my $end (IO::Select->new($near, $far->{socket})->can_read(0.1)) {
            my $bytes;
            $pass->($end == $near, $bytes) if sysread $end, $bytes, 65536;
        }
        return slurp($said->filename) =~ /^SSL handshake has/m;
    });
    syswrite $to, $words;
    close $to;
    my $last = '';
    1 while sysread $near, $last, 65536, length $last;
    close $near;
    waitpid $pid, 0;
    my @records = records_of($last);
    pop @records if $end eq 'cut';
    my $changed = $end eq 'changed' ? pop(@records) ^. ("\0" x 5 . "\1") : '';
    $far->send(join '', @records);
    until_true(sub { $origin->count('/secret') }) if $changed;
    $far->send($changed);
    $far->finish if $end eq 'cut';
    $far->drain;
    return $far;
}

# The records that something is made of.
sub records_of ($bytes) {
    my @records;
    push @records, substr $bytes, 0, 5 + unpack('x3 n', $bytes), '' while length $bytes >= 5;
    return (@records, $bytes eq '' ? () : $bytes);
}

# The first bytes that a TLS client sends.
sub client_hello () {
    my $listener = IO::Socket::IP->new(LocalHost => '127.0.0.1', LocalPort => 0, Listen => 1) or die "listen: $@\n";
    my $pid = fork // die "fork: $!\n";
    if ($pid == 0) {
        open STDIN,  '<',  '/dev/null';
        open STDOUT, '>',  '/dev/null';
        open STDERR, '>&', \*STDOUT;
        exec 'openssl', 's_client', '-connect', '127.0.0.1:' . $listener->sockport;
    }
    my $peer = $listener->accept;
    my $hello = '';
    sysread $peer, $hello, 65536, length $hello while length $hello < 5 || length $hello < 5 + unpack 'x3 n', $hello;
    close $peer;
    waitpid $pid, 0;
    return $hello;
}

make_certificate('first');
my $hello = client_hello();
my $small = slurp("$FindBin::Bin/../data/small.txt");
my $root  = tree('small.txt' => $small, 'large.bin' => join('', map { pack 'N', $_ } 1 .. 1_300_000), 'record.bin' => 'r' x 16384,
    'page.html' => '<!DOCTYPE html><title>t</title><p id=p></p><script src="/page.js"></script>',
    'page.js'   => 'document.getElementById("p").textContent = "by " + location.protocol');
my $large = slurp("$root/large.bin");

each_server(sub ($model) {
    my @workers = $model->{workers} ? qw(--workers 3) : ();
    my $log = "$place/log.$model->{name}";
    my $server = start_server(root => $root, options => [tls_options('first'), @workers, '--log', $log, '--idle-timeout', 3600]);
    my $url = $server->url;
    like $server->{ready}, qr{https://}, 'the ready line says https';

    # Documents
    is curl($server, 'first', "${url}small.txt")->{out}, $small, 'curl trusts the certificate, and gets the document';
    ok curl($server, 'first', "${url}large.bin")->{out} eq $large, 'a large document is whole';
    is length curl($server, 'first', "${url}record.bin")->{out}, 16384, 'a document as long as a record is whole';
    is curl($server, 'first', '--range', '1000-1999', "${url}large.bin")->{out}, substr($large, 1000, 1000), 'a range';
    is curl($server, 'first', '--range', '0-0,20000-39999', "${url}large.bin")->{status}, 0, 'several ranges';
    like curl($server, 'first', '--head', "${url}small.txt")->{out}, qr{^HTTP/1.1 200 .*Content-Length: 1000\r}s, 'HEAD';
    is curl($server, 'first', '--data-binary', "\@$root/large.bin", '-o', '/dev/null', '-w', '%{http_code}', "${url}small.txt")->{out},
        405, 'a body that nobody wants is refused before it comes';
    is curl($server, 'first', '-H', 'Expect:', '--data-binary', "\@$root/large.bin", '-o', '/dev/null', '-w', '%{http_code}', "${url}small.txt")->{out},
        413, 'a body that is too long is refused while it comes';
    is curl($server, 'first', '--tlsv1.2', '--tls-max', '1.2', "${url}small.txt")->{out}, $small, 'TLS 1.2';
    is curl($server, 'first', '-o', '/dev/null', '-o', '/dev/null', '-w', '%{num_connects} ', "${url}small.txt", "${url}none")->{out},
        '1 0 ', 'a connection is used for two requests';
    if ($model->{single} || !has_browser()) {
        skip_case('a browser: not in this pass, not installed, or it needs several connections');
    } else {
        like browse("${url}page.html", '--ignore-certificate-errors'), qr{<p id="p">by https:</p>}, 'a browser shows a page with its script';
    }
    my $many = client($server, request(GET => '/small.txt') x 99 . $last);
    is scalar(() = $many =~ m{^HTTP/1\.1 200 OK}mg), 100, '100 pipelined requests are answered';
    is run_command('ab', '-q', '-n', 40, '-c', $model->{single} ? 1 : 4, "${url}small.txt")->{status}, 0, 'some load';
    like slurp($log), qr{^127\.0\.0\.1 - - \[[^\]]+\] "GET /none HTTP/1\.1" 404 \d+ "-" "curl/}m, 'the log tells of them';

    # Versions, protocols, resumption
    like client($server, $last, '-tls1_3'), qr/^New, TLSv1\.3, /m, 'TLS 1.3 is spoken';
    for my $old (qw(-tls1 -tls1_1)) {
        my $said = client($server, $last, $old, '-cipher', 'DEFAULT@SECLEVEL=0');
        like $said, qr/alert protocol version/, "$old is refused with an alert";
        unlike $said, qr{HTTP/1}, "$old gets no document";
    }
    like client($server, $last, '-tls1_2', '-cipher', 'AES128-SHA:AES128-GCM-SHA256'), qr/alert handshake failure/,
        'a cipher without forward secrecy is refused';
    like client($server, $last, '-alpn', 'h2,http/1.1'), qr/^ALPN protocol: http\/1\.1/m, 'ALPN: http/1.1 is chosen';
    like client($server, $last, '-alpn', 'h2'), qr/alert no application protocol/, 'ALPN: h2 alone is refused';
    for my $version (qw(-tls1_2 -tls1_3)) {
        like client($server, $last, $version, '-sess_out', "$place/session"), qr/^New, /m, "$version: a new session";
        my $reused = 0;
        for (1 .. 5) { $reused++ if client($server, $last, $version, '-sess_in', "$place/session") =~ /^Reused, .*^HTTP\/1\.1 200/ms }
        is $reused, 5, "$version: the session goes on in 5 other connections, whoever serves them";
    }
    like client($server, $last, '-tls1_3', '-sess_in', "$place/session"), qr/^Reused, .*^Post-Handshake New Session Ticket arrived/ms,
        'TLS 1.3: a session that goes on has a ticket for the next time';
    unlike client($server, "R\n$last", '-tls1_2', '-no_ign_eof'), qr/^HTTP\/1\.1 200/m, 'renegotiation is not done';

    # A client that sends no more
    my $patient = start_server(root => $root, options => [tls_options('first'), @workers, '--idle-timeout', 3600]);
    for my $version ('-tls1_2', '-tls1_3') {
        for my $end ('said', 'cut') {
            my $name = "$version, a request with " . ($end eq 'cut' ? 'the end of TCP' : 'a close_notify') . ' behind it';
            my $far = hasty_client($patient, $end, request(GET => '/small.txt'), $version);
            ok $far->{ended} && !$far->{failure}, "$name: the connection ends";
            cmp_ok length $far->pending, '>', 1000, "$name: with the document";
            my ($last_kind) = unpack 'C', (records_of($far->pending))[-1];
            is $last_kind, 21, "$name: and a close_notify" if $version eq '-tls1_2';    # later ones hide what they are
        }
    }
    $patient->stop;

    # A proxy
    my $proxy = start_server(options => [tls_options('first'), @workers, qw(--service proxy --no-cache)]);
    my $target = '127.0.0.1:' . $origin->port;
    $origin->play('/through', response(200, $large));
    $origin->play('/secret', [\'secret', response(200, 'secret')->[0]]);
    for my $way ([], ['--proxytunnel']) {
        my $run = run_command(qw(curl --silent --show-error --proxy), $proxy->url, '--proxy-cacert', "$place/first.pem", @$way, $origin->url('/through'));
        ok $run->{out} eq $large, "through a proxy by TLS (@$way)" or diag($run->{err});
    }
    my $tapped = hasty_client($proxy, 'changed', request(CONNECT => $target, Host => $target) . request(GET => '/secret'), '-tls1_3');
    ok $tapped->{ended}, 'a tunnel ends when a record was changed on its way: nothing goes on without TLS';
    $origin->open_gate('secret');
    $proxy->stop(warnings => qr/limit of \d+ descriptors/);

    # What is no TLS
    my $plain = $server->get('/small.txt');
    is $plain->{status}, 400, 'plain HTTP: 400';
    like $plain->{body}, qr/HTTPS/, 'plain HTTP: the page says why';
    for my $case (['zeros', "\0" x 200], ['letters', 'g' x 200], ['a record of nothing known', "\x16\x03\x01\x00\x05hello"],
        ['a record that is too long', "\x16\x03\x03\xff\xff" . 'x' x 2000], ['half of a hello', substr $hello, 0, 100], ['nothing', ''])
    {
        my ($name, $bytes) = @$case;
        my $connection = $server->connect;
        $connection->send($bytes);
        $connection->finish;
        my $answer = $connection->drain;
        ok $connection->{ended} && !$connection->{failure}, "$name instead of a hello: the connection ends cleanly";
        ok $answer eq '' || $answer =~ /\A\x15\x03[\x00-\x04]\x00\x02\x02.\z/s, "$name instead of a hello: a fatal alert, or nothing"
            or diag(unpack 'H*', $answer);
    }
    my $twice = $server->connect;
    $twice->send($hello . 'GET / HTTP/1.1');
    ok until_true(sub { $twice->fill(0.1); $twice->{ended} }), 'a hello with HTTP behind it: the connection ends';
    is curl($server, 'first', "${url}small.txt")->{out}, $small, 'after all that documents are served';

    # Targets that name their scheme
    for my $case ([200, "https://localhost:$server->{port}/small.txt"], [421, "http://localhost:$server->{port}/small.txt"]) {
        my ($status, $target) = @$case;
        like client($server, request(GET => $target, Connection => 'close')), qr{^HTTP/1\.1 $status }m, "$target: $status";
    }

    # A new certificate
    my $session = $model->{single} ? undef : waiting_client($server);
    is serial_of($server), 1, 'the first certificate';
    my $second = make_certificate('first');
    $server->signal('HUP');
    ok until_true(sub { $server->errors =~ /was read again/ }), 'SIGHUP: the server says that it has read the certificate again';
    my %serials = map { serial_of($server) => 1 } 1 .. 6;
    is join(' ', keys %serials), $second, 'SIGHUP: all connections from now on get the new certificate';
    like $session->{ask}(), qr{^HTTP/1\.1 200 }m, 'SIGHUP: a connection of before goes on' if $session;
    like client($server, $last, '-sess_in', "$place/session"), qr/^Reused, /m, 'SIGHUP: a session of before goes on';
    for my $case (['no certificate', '.pem', "nonsense\n"], ['no key', '.key', "nonsense\n"], ['a key of another', '.key', undef]) {
        my ($name, $ending, $content) = @$case;
        my $said = length $server->errors;
        my $kept = slurp("$place/first$ending");
        if (!defined $content) {
            my $keep = slurp("$place/first.pem");
            make_certificate('first');
            spit("$place/first.pem", $keep);
        } else {
            spit("$place/first$ending", $content);
        }
        $server->signal('HUP');
        ok until_true(sub { substr($server->errors, $said) =~ /stays in use/ }), "SIGHUP, $name: the server says that it keeps the one of before";
        like substr($server->errors, $said), qr/\Q$place\E/, "SIGHUP, $name: and names the file";
        is serial_of($server), $second, "SIGHUP, $name: the certificate of before is used";
        spit("$place/first$ending", $kept);
    }
    unlink "$place/first.key";
    $server->signal('HUP');
    ok until_true(sub { $server->errors =~ /cannot read the key '[^']*': No such file/ }), 'SIGHUP, the key is gone: the server says so';
    is serial_of($server), $second, 'SIGHUP, the key is gone: the certificate of before is used';
    $server->stop(warnings => qr/certificate|key/);
    $serial = 0;
    make_certificate('first');

    # Time: each server has one deadline that is short
    $server = start_server(root => $root, options => [tls_options('first'), '--request-timeout', 1, @workers]);
    my $slow = $server->connect;
    my $sent = 0;
    until_true(sub {
        $slow->send(substr $hello, $sent++, 1) if $sent < length($hello) - 1;
        return !$slow->open;
    });
    ok $slow->{ended}, 'a hello byte by byte: cut off';    # a byte that was on its way then is answered by a reset
    cmp_ok $sent, '<', length($hello) - 1, 'a hello byte by byte: at the deadline, which the bytes do not move';
    ok $server->connect->ends, 'a client that says nothing is cut off';
    $server->stop;

    $server = start_server(root => $root, options => [tls_options('first'), '--idle-timeout', 1, @workers]);
    like client($server, request(GET => '/small.txt')), qr/^closed$/m, 'an idle connection is ended with a close_notify';
    if (!$model->{single}) {
        my $silent = $server->connect;
        is curl($server, 'first', $server->url . 'small.txt')->{out}, $small, 'a client that says nothing keeps nobody waiting';
    }
    $server->stop;

    $server = start_server(root => $root, options => [tls_options('first'), '--write-timeout', 1, '--stats', "$place/stats", @workers]);
    my $stalled = waiting_client($server, '/large.bin');
    ok until_true(sub {
        $server->signal('USR1');
        return -s "$place/stats" && slurp("$place/stats") =~ /"active": 0,.*"errors": 1,/;
    }), 'a client that does not read is cut off';
    $stalled->{end}();
    is curl($server, 'first', $server->url . 'small.txt')->{out}, $small, 'after a stalled reader documents are served';
    $server->stop;

    # A stop: the deadline of the client is over before that of the stop, which would leave it only a moment to be told
    $server = start_server(root => $root, options => [tls_options('first'), qw(--request-timeout 4 --stop-timeout 3600), @workers]);
    my $waiting = waiting_client($server);
    $server->stop(name => 'it stops while a client is idle');
    like $waiting->{ask}(), qr/^closed$/m, 'the idle client is told of it by a close_notify';
    $server = start_server(root => $root, options => [tls_options('first'), @workers]);
    my @readers;
    until_true(sub { @readers = grep { (eval { slurp("/proc/$_->[0]/comm") } // '') eq "key_reader\n" } group_processes($server->pid) });
    is scalar @readers, 1, 'one process can read the certificate again';
    kill KILL => $server->pid;
    ok until_true(sub { !-e "/proc/$readers[0][0]" || (eval { slurp("/proc/$readers[0][0]/stat") } // ' Z ') =~ / Z / }), 'it ends with a server that is killed';
    $server->discard;

    # The first process of a container has all processes that nobody else waits for: the one that reads certificates, too.
    my @container = qw(unshare --pid --fork --kill-child);
    if (run_command(@container, 'true')->{status} == 0) {
        $server = start_server(root => $root, through => \@container, environment => no_leak_search(), options => [tls_options('first'), @workers]);
        is curl($server, 'first', $server->url . 'small.txt')->{out}, $small, 'first process of a container: a document';
        kill TERM => grep { (eval { slurp("/proc/$_/status") } // '') =~ /^NSpid:.*\t1$/m } map { $_->[0] } group_processes($server->pid);
        $server->ended(name => 'first process of a container: it stops');
    } else {
        skip_case('this user can make no container');
    }

    # A server that encrypts nothing
    $server = start_server(root => $root);
    is $server->get("http://localhost:$server->{port}/small.txt")->{status}, 200, 'without --tls: a target with http';
    is $server->get("https://localhost:$server->{port}/small.txt")->{status}, 421, 'without --tls: a target with https means another server';
    $server->stop;

    # The command line
    spit("$place/locked.key", run_command(qw(openssl pkey -aes128 -passout pass:x -in), "$place/first.key")->{out});
    make_certificate('weak', qw(-newkey rsa:1024));
    make_certificate('other');
    spit("$place/nonsense", "nonsense\n");
    POSIX::mkfifo("$place/pipe", 0600) if !-e "$place/pipe";
    my @wrong = (
        ['a pipe that nobody writes to',    "$place/first.pem", "$place/pipe", qr/holds no private key/],
        ['a certificate that is not there', "$place/none", "$place/first.key", qr/cannot read the certificate .*none': No such file/],
        ['a key that is not there',         "$place/first.pem", "$place/none", qr/cannot read the key .*none': No such file/],
        ['a directory',                     "$place/first.pem", "$place", qr/cannot read the key .*Is a directory/],
        ['a certificate that is none',      "$place/nonsense", "$place/first.key", qr/holds no certificate/],
        ['a key that is none',              "$place/first.pem", "$place/nonsense", qr/holds no private key/],
        ['a key of another certificate',    "$place/first.pem", "$place/other.key", qr/does not belong/],
        ['a locked key',                    "$place/first.pem", "$place/locked.key", qr/passphrase/],
        ['a weak key',                      "$place/weak.pem", "$place/weak.key", qr/too small/],
    );
    for my $case (@wrong) {
        my ($name, $certificate, $key, $said) = @$case;
        my $end = run_server('--tls', '--cert', $certificate, '--key', $key, 0);
        is $end->{status}, 1, "$name: status 1";
        like $end->{err}, qr/^[^\n]*$said[^\n]*\n\z/, "$name: one clear line" or diag($end->{err});
    }
    is run_server('--cert', "$place/first.pem", 0)->{status}, 2, '--cert without --tls: a bad command line';

    # In the sandbox, and without privileges
    return if sanitized();
    chmod 0600, "$place/first.key";
    my @user = $> == 0 && getpwnam 'nobody' ? qw(--user nobody) : ();
    $server = start_server(root => $root, sandbox => 1, options => [tls_options('first'), @user, @workers]);
    is curl($server, 'first', $server->url . 'small.txt')->{out}, $small, "in the sandbox @user: a document";
    my $renewed = make_certificate('first');
    chmod 0600, "$place/first.key";
    $server->signal('HUP');
    ok until_true(sub { $server->errors =~ /was read again/ }), "in the sandbox @user: a key that only its owner may read is read again";
    is serial_of($server), $renewed, "in the sandbox @user: and used";
    $server->stop(warnings => qr/sandbox|landlock|certificate/i);
    $serial = 0;
    make_certificate('first');
});

# A client that has a connection now. It asks for a document when it is told to, and then says all that it has got; or
# it asks at once, and never reads the answer.
sub waiting_client ($server, $stalls_on = undef) {
    pipe my $from, my $to or die "pipe: $!\n";
    pipe my $answer, my $answer_end or die "pipe: $!\n";
    my $pid = fork // die "fork: $!\n";
    if ($pid == 0) {
        open STDIN,  '<&', $from;
        open STDOUT, '>&', $answer_end;
        open STDERR, '>&', $answer_end;
        exec qw(openssl s_client -ign_eof -connect), "$server->{host}:$server->{port}";
    }
    close $from;
    close $answer_end;
    my $said = '';
    until_true(sub { IO::Select->new($answer)->can_read(0.1) && sysread $answer, $said, 65536, length $said; $said =~ /^SSL handshake has/m });
    syswrite $to, request(GET => $stalls_on, Connection => 'close') if $stalls_on;
    return {
        ask => sub {
            syswrite $to, $last;
            close $to;
            1 while sysread $answer, $said, 65536, length $said;
            waitpid $pid, 0;
            return $said;
        },
        end => sub { kill KILL => $pid; waitpid $pid, 0 },
    };
}

done_testing;
