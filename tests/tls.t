#!/usr/bin/perl
# --tls: HTTPS. Documents, versions and sessions of TLS, malformed records, new certificates, deadlines, a stop, the command line.
use v5.36;
use FindBin;
use lib "$FindBin::Bin/lib";
use Harness;
use Origin;
use ProxyFields qw(%few);
use POSIX ();

my $origin = Origin->new;
my $place  = scratch();
my $serial = 0;

# Makes a certificate and its key, which replace the files of that name. Returns the serial number.
sub make_certificate ($name, @key) {
    @key = qw(-newkey ec -pkeyopt ec_paramgen_curve:P-256) if !@key;
    my $made = run_command(qw(openssl req -x509 -days 2 -nodes -subj /CN=localhost -addext), "subjectAltName=DNS:localhost,IP:127.0.0.1",
        '-set_serial', ++$serial, @key, '-keyout', "$place/new.key", '-out', "$place/new.pem");
    die "no certificate: $made->{err}\n" if $made->{status} != 0;
    rename "$place/new.key", "$place/$name.key" or die "rename: $!\n";
    rename "$place/new.pem", "$place/$name.pem" or die "rename: $!\n";
    return $serial;
}

# Makes a certificate that all models use, unless it is there.
sub have_certificate ($name, @key) { return -e "$place/$name.pem" ? () : make_certificate($name, @key) }

sub tls_options ($name) { return ('--tls', '--cert', "$place/$name.pem", '--key', "$place/$name.key") }

# The TLS client. It does not read the certificates that this machine trusts, which takes most of its time.
my @client = qw(openssl s_client -no-CAfile -no-CApath -no-CAstore);
my $inputs = 0;

# Runs a TLS client that sends this and reads until the server ends the connection. Returns what it prints.
sub client ($server, $input, @options) {
    my $file = "$place/input." . ++$inputs;
    spit($file, $input);
    my $run = run_command('sh', '-c', 'exec "$@" <"$0" 2>&1', $file, @client, '-connect', "$server->{host}:$server->{port}", '-ign_eof',
        @options);
    unlink $file;
    return $run->{out};
}

my $last = request(GET => '/small.txt', Connection => 'close');

# The processes of a server that have this name.
sub helpers ($server, $name) { return map { $_->[0] } grep { $_->[1] ne 'Z' && $_->[2] eq $name } group_processes($server->pid) }

# The processes that hold the key for the server.
sub key_holders ($server) { return helpers($server, 'key_process') }

# Those of them that stay with a worker: these have a second socket.
sub signers_that_stay ($server) {
    return grep { my $process = $_; 1 < grep { (readlink $_ // '') =~ /\Asocket:/ } glob "/proc/$process/fd/*" } key_holders($server);
}

# Returns the private key in a file as it would be in memory: as text, or as a number in either order of its bytes.
sub key_patterns ($file) {
    my ($number) = run_command(qw(openssl pkey -noout -text -in), $file)->{out} =~ /^(?:priv|privateExponent):\s*((?:\s*[0-9a-f]{2}:?)+)/m;
    my $bytes = pack 'H*', $number =~ s/[^0-9a-f]//gr =~ s/^00//r;
    my ($line) = slurp($file) =~ /\n([^\n-]{60,})\n/;
    return ($line, substr($bytes, 0, 32), substr scalar reverse($bytes), -32);
}

# Is one of the patterns in the memory of the process?
sub has_key ($pid, @patterns) {
    no warnings 'portable';    # an address has 64 bits
    open my $memory, '<:raw', "/proc/$pid/mem" or return 0;
    for my $map (split /\n/, slurp("/proc/$pid/maps")) {
        my ($start, $end) = $map =~ /^(\w+)-(\w+) rw/ or next;
        next if hex($end) - hex($start) > 1 << 26 || !sysseek $memory, hex $start, 0;
        sysread $memory, my $content, hex($end) - hex $start;
        my $found = grep { defined $content && index($content, $_) >= 0 } @patterns;
        undef $content;    # gives the memory back
        return 1 if $found;
    }
    return 0;
}

sub serial_of ($server) {
    my ($text) = client($server, $last) =~ /(-----BEGIN CERTIFICATE-----.*?-----END CERTIFICATE-----)/s or return 'none';
    state %known;    # by the text of the certificate
    return $known{$text} //= do {
        spit("$place/seen.pem", $text);
        hex(run_command('openssl', 'x509', '-in', "$place/seen.pem", '-noout', '-serial')->{out} =~ s/serial=|\n//gr);
    };
}

sub curl ($server, $name, @arguments) {
    return run_command(qw(curl --silent --show-error --noproxy *), '--cacert', "$place/$name.pem", @arguments);
}

# Runs a TLS client whose request and close_notify reach the server in one piece after the handshake. If $end is `cut`, the
# close_notify is left out, and TCP ends instead. If it is `changed`, the close_notify follows when the origin has the request
# for /secret, with one bit changed. Returns the connection to the server, with all that the server sent after that.
sub hasty_client ($server, $end, $request, @options) {
    my $listener = IO::Socket::IP->new(LocalHost => '127.0.0.1', LocalPort => 0, Listen => 1) or die "listen: $@\n";
    pipe my $from, my $to or die "pipe: $!\n";
    my $said = File::Temp->new;
    my $pid = fork // die "fork: $!\n";
    if ($pid == 0) {
        open STDIN,  '<&', $from;
        open STDOUT, '>&', $said;
        open STDERR, '>&', $said;
        close $to;
        exec @client, @options, '-connect', '127.0.0.1:' . $listener->sockport;
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
    syswrite $to, $request;
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

# Splits bytes into TLS records.
sub records_of ($bytes) {
    my @records;
    push @records, substr $bytes, 0, 5 + unpack('x3 n', $bytes), '' while length $bytes >= 5;
    return (@records, $bytes eq '' ? () : $bytes);
}

# Returns the ClientHello that a TLS client sends.
sub client_hello () {
    my $listener = IO::Socket::IP->new(LocalHost => '127.0.0.1', LocalPort => 0, Listen => 1) or die "listen: $@\n";
    my $pid = fork // die "fork: $!\n";
    if ($pid == 0) {
        open STDIN,  '<',  '/dev/null';
        open STDOUT, '>',  '/dev/null';
        open STDERR, '>&', \*STDOUT;
        exec @client, '-connect', '127.0.0.1:' . $listener->sockport;
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
my $large = '';
$large .= pack 'N', $_ for 1 .. 1_300_000;    # a list of these would make this process large, and each fork slow
my $root  = tree('small.txt' => $small, 'large.bin' => $large, 'record.bin' => 'r' x 16384,
    'page.html' => '<!DOCTYPE html><title>t</title><p id=p></p><script src="/page.js"></script>',
    'page.js'   => 'document.getElementById("p").textContent = "by " + location.protocol');

each_server(sub ($model) {
    my @workers = $model->{workers} ? qw(--workers 3) : ();
    my $log = "$place/log.$model->{name}";
    my $server = start_server(root => $root, options => [tls_options('first'), @workers, '--log', $log, '--idle-timeout', 3600]);
    my $url = $server->url;
    like $server->{ready}, qr{https://}, 'the ready line has a URL with https';

    # Documents
    is curl($server, 'first', "${url}small.txt")->{out}, $small, 'curl verifies the certificate and gets the document';
    ok curl($server, 'first', "${url}large.bin")->{out} eq $large, 'a large document arrives whole';
    is length curl($server, 'first', "${url}record.bin")->{out}, 16384, 'a document as long as a TLS record arrives whole';
    is curl($server, 'first', '--range', '1000-1999', "${url}large.bin")->{out}, substr($large, 1000, 1000), 'a range arrives';
    my $ranges = curl($server, 'first', '--range', '0-0,20000-39999', "${url}large.bin")->{out};
    is scalar(() = $ranges =~ /^Content-Range: bytes (?:0-0|20000-39999)\//mg), 2, 'several ranges have a part each';
    ok index($ranges, "\r\n\r\n" . substr($large, 20_000, 20_000) . "\r\n--") > 0, 'a part of several records arrives whole';
    like curl($server, 'first', '--head', "${url}small.txt")->{out}, qr{^HTTP/1.1 200 .*Content-Length: 1000\r}s, 'HEAD gets the head';
    is curl($server, 'first', '--data-binary', "\@$root/large.bin", '-o', '/dev/null', '-w', '%{http_code}', "${url}small.txt")->{out},
        405, 'a POST is refused with 405 before its body comes';
    is curl($server, 'first', '-H', 'Expect:', '--data-binary', "\@$root/large.bin", '-o', '/dev/null', '-w', '%{http_code}', "${url}small.txt")->{out},
        413, 'a body that is too long is refused with 413 while it comes';
    is curl($server, 'first', '--tlsv1.2', '--tls-max', '1.2', "${url}small.txt")->{out}, $small, 'a client of TLS 1.2 gets the document';
    is curl($server, 'first', '-o', '/dev/null', '-o', '/dev/null', '-w', '%{num_connects} ', "${url}small.txt", "${url}none")->{out},
        '1 0 ', 'two requests use one connection';
    if ($model->{single} || !has_browser()) {
        skip_case('no browser is used here, or the model serves one connection at a time');
    } else {
        like browse("${url}page.html", '--ignore-certificate-errors'), qr{<p id="p">by https:</p>}, 'a browser shows a page and runs its script';
    }
    my $many = client($server, request(GET => '/small.txt') x 99 . $last);
    is scalar(() = $many =~ m{^HTTP/1\.1 200 OK}mg), 100, '100 pipelined requests get responses';
    is run_command('ab', '-q', '-n', 40, '-c', $model->{single} ? 1 : 4, "${url}small.txt")->{status}, 0, 'ab over TLS reports no error';
    like slurp($log), qr{^127\.0\.0\.1 - - \[[^\]]+\] "GET /none HTTP/1\.1" 404 \d+ "-" "curl/}m, 'requests over TLS are logged';

    # Versions, protocols, resumption
    like client($server, $last, '-tls1_3'), qr/^New, TLSv1\.3, /m, 'a client of TLS 1.3 gets it';
    for my $old (qw(-tls1 -tls1_1)) {
        my $said = client($server, $last, $old, '-cipher', 'DEFAULT@SECLEVEL=0');
        like $said, qr/alert protocol version/, "$old is refused with an alert";
        unlike $said, qr{HTTP/1}, "$old gets no document";
    }
    like client($server, $last, '-tls1_2', '-cipher', 'AES128-SHA:AES128-GCM-SHA256'), qr/alert handshake failure/,
        'a cipher without forward secrecy is refused';
    like client($server, $last, '-alpn', 'h2,http/1.1'), qr/^ALPN protocol: http\/1\.1/m, 'ALPN: the server chooses http/1.1';
    like client($server, $last, '-alpn', 'h2'), qr/alert no application protocol/, 'ALPN: a client that offers h2 alone is refused';
    for my $version (qw(-tls1_2 -tls1_3)) {
        like client($server, $last, $version, '-sess_out', "$place/session"), qr/^New, /m, "$version: a client without a ticket gets a new session";
        my $reused = 0;
        for (1 .. 5) { $reused++ if client($server, $last, $version, '-sess_in', "$place/session") =~ /^Reused, .*^HTTP\/1\.1 200/ms }
        is $reused, 5, "$version: 5 other connections resume the session, whichever worker serves them";
    }
    like client($server, $last, '-tls1_3', '-sess_in', "$place/session"), qr/^Reused, .*^Post-Handshake New Session Ticket arrived/ms,
        'TLS 1.3: a resumed session gets a ticket for the next one';
    unlike client($server, "R\n$last", '-tls1_2', '-no_ign_eof'), qr/^HTTP\/1\.1 200/m, 'a client that renegotiates gets no document';

    # A client that closes its side right after its request
    my $patient = start_server(root => $root, options => [tls_options('first'), @workers, '--idle-timeout', 3600]);
    for my $version ('-tls1_2', '-tls1_3') {
        for my $end ('said', 'cut') {
            my $name = "$version, a request with " . ($end eq 'cut' ? 'the end of TCP' : 'a close_notify') . ' in one piece';
            my $far = hasty_client($patient, $end, request(GET => '/small.txt'), $version);
            ok $far->{ended} && !$far->{failure}, "$name: the connection ends";
            cmp_ok length $far->pending, '>', 1000, "$name: the document comes first";
            my ($last_kind) = unpack 'C', (records_of($far->pending))[-1];
            is $last_kind, 21, "$name: the last record is an alert, close_notify" if $version eq '-tls1_2';    # TLS 1.3 hides the kind of a record
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
        ok $run->{out} eq $large, "curl gets a document through an HTTPS proxy (@$way)" or diag($run->{err});
    }
    my $tapped = hasty_client($proxy, 'changed', request(CONNECT => $target, Host => $target) . request(GET => '/secret'), '-tls1_3');
    ok $tapped->{ended}, 'a tunnel ends when a record of the client was changed on its way';
    $origin->open_gate('secret');
    $proxy->stop(%few);

    # Clients that do not speak TLS
    my $plain = $server->get('/small.txt');
    is $plain->{status}, 400, 'plain HTTP to the port of HTTPS gets 400';
    like $plain->{body}, qr/HTTPS/, 'plain HTTP to the port of HTTPS: the page names HTTPS';
    for my $case (['zeros', "\0" x 200], ['letters', 'g' x 200], ['a malformed handshake record', "\x16\x03\x01\x00\x05hello"],
        ['a record that is too long', "\x16\x03\x03\xff\xff" . 'x' x 2000], ['half of a ClientHello', substr $hello, 0, 100], ['nothing', ''])
    {
        my ($name, $bytes) = @$case;
        my $connection = $server->connect;
        $connection->send($bytes);
        $connection->finish;
        my $bytes_back = $connection->drain;
        ok $connection->{ended} && !$connection->{failure}, "$name instead of a ClientHello: the connection ends without a reset";
        ok $bytes_back eq '' || $bytes_back =~ /\A\x15\x03[\x00-\x04]\x00\x02\x02.\z/s, "$name instead of a ClientHello gets a fatal alert or nothing"
            or diag(unpack 'H*', $bytes_back);
    }
    my $twice = $server->connect;
    $twice->send($hello . 'GET / HTTP/1.1');
    ok until_true(sub { $twice->fill(0.1); $twice->{ended} }), 'a ClientHello followed by plain HTTP: the connection ends';
    is curl($server, 'first', "${url}small.txt")->{out}, $small, 'after malformed handshakes the server serves documents';

    # Targets that name their scheme
    for my $case ([200, "https://localhost:$server->{port}/small.txt"], [421, "http://localhost:$server->{port}/small.txt"]) {
        my ($status, $target) = @$case;
        like client($server, request(GET => $target, Connection => 'close')), qr{^HTTP/1\.1 $status }m, "a request for $target gets $status";
    }

    # A new certificate
    my $session = $model->{single} ? undef : waiting_client($server);
    is serial_of($server), 1, 'a client gets the certificate of the start';
    my $second = make_certificate('first');
    $server->signal('HUP');
    ok until_true(sub { $server->errors =~ /was read again/ }), 'SIGHUP: the server says that it has reloaded the certificate';
    my %serials = map { serial_of($server) => 1 } 1 .. 6;
    is join(' ', keys %serials), $second, 'SIGHUP: new connections get the new certificate';
    like $session->{ask}(), qr{^HTTP/1\.1 200 }m, 'SIGHUP: a connection that was open before is served' if $session;
    like client($server, $last, '-sess_in', "$place/session"), qr/^Reused, /m, 'SIGHUP: a session from before can be resumed';
    for my $case (['a malformed certificate', '.pem', "nonsense\n"], ['a malformed key', '.key', "nonsense\n"], ['the key of another certificate', '.key', undef]) {
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
        ok until_true(sub { substr($server->errors, $said) =~ /stays in use/ }), "SIGHUP, $name: the server says that it keeps the old certificate";
        like substr($server->errors, $said), qr/\Q$place\E/, "SIGHUP, $name: the server names the file";
        is serial_of($server), $second, "SIGHUP, $name: clients get the old certificate";
        spit("$place/first$ending", $kept);
    }
    unlink "$place/first.key";
    $server->signal('HUP');
    ok until_true(sub { $server->errors =~ /cannot read the key '[^']*': No such file/ }), 'SIGHUP, no key file: the server says that it cannot read the key';
    is serial_of($server), $second, 'SIGHUP, no key file: clients get the old certificate';
    $server->stop(warnings => qr/certificate|key/);
    $serial = 0;
    make_certificate('first');

    # Deadlines: each server has a short one
    $server = start_server(root => $root, options => [tls_options('first'), '--request-timeout', 1, @workers]);
    my $slow = $server->connect;
    my $sent = 0;
    until_true(sub {
        $slow->send(substr $hello, $sent++, 1) if $sent < length($hello) - 1;
        return !$slow->open;
    });
    ok $slow->{ended}, 'a client that sends its ClientHello byte by byte is cut off';    # perhaps by a reset, which answers a byte that was on its way
    cmp_ok $sent, '<', length($hello) - 1, 'a ClientHello byte by byte: the bytes do not extend the deadline';
    ok $server->connect->ends, 'a client that sends nothing is cut off';
    $server->stop;

    $server = start_server(root => $root, options => [tls_options('first'), '--idle-timeout', 1, @workers]);
    like client($server, request(GET => '/small.txt')), qr/^closed$/m, 'an idle connection ends with a close_notify';
    if (!$model->{single}) {
        my $silent = $server->connect;
        is curl($server, 'first', $server->url . 'small.txt')->{out}, $small, 'a client that sends nothing does not delay others';
    }
    $server->stop;

    $server = start_server(root => $root, options => [tls_options('first'), '--write-timeout', 1, '--stats', "$place/stats", @workers]);
    my $stalled = waiting_client($server, '/large.bin');
    ok until_true(sub {
        $server->signal('USR1');
        return -s "$place/stats" && slurp("$place/stats") =~ /"active": 0,.*"errors": 1,/;
    }), 'a client that stops reading is cut off';
    $stalled->{end}();
    is curl($server, 'first', $server->url . 'small.txt')->{out}, $small, 'after a client that stopped reading the server serves documents';
    $server->stop;

    # A stop. The request timeout of the client ends before --stop-timeout, so that it gets a close_notify.
    $server = start_server(root => $root, options => [tls_options('first'), qw(--request-timeout 4 --stop-timeout 3600), @workers]);
    my $waiting = waiting_client($server);
    $server->stop(name => 'SIGTERM stops a server that has an idle client');
    like $waiting->{ask}(), qr/^closed$/m, 'SIGTERM: an idle client gets a close_notify';
    $server = start_server(root => $root, options => [tls_options('first'), @workers]);
    my @holders;
    until_true(sub { (@holders = key_holders($server)) > 1 });
    cmp_ok scalar @holders, '>', 1, 'a process holds the key, and others below it sign';
    kill KILL => $server->pid;
    ok until_true(sub { !grep { -e "/proc/$_" && (eval { slurp("/proc/$_/stat") } // ' Z ') !~ / Z / } @holders }), 'they end when the server is killed';
    $server->discard;

    # The key is in no process of the server, whatever the key and the version of TLS. Signers that die are replaced.
    for my $key ([first => ()], [rsa => qw(-newkey rsa:2048)], [ed25519 => qw(-newkey ed25519)]) {
        my ($name, @kind) = @$key;
        have_certificate($name, @kind);
        for my $process ('on', 'off') {
            my $case = "--key-process $process, $name";
            $server = start_server(root => $root, options => [tls_options($name), @workers, '--key-process', $process]);
            for my $version ([qw(--tlsv1.3)], [qw(--tls-max 1.2)]) {
                is curl($server, $name, @$version, $server->url . 'small.txt')->{out}, $small, "$case: a document by @$version";
            }
            my $holders = { map { $_ => 1 } key_holders($server) };
            my @patterns = key_patterns("$place/$name.key");
            my @with = grep { !$holders->{$_} && has_key($_, @patterns) } map { $_->[0] } group_processes($server->pid);
            if ($> != 0) { skip_case('only root may look into other processes') }
            elsif ($process eq 'on') { is "@with", '', "$case: the server and its workers do not have the key" }
            else                     { ok scalar(@with), "$case: the server has the key itself" }
            if ($process eq 'on') {
                my ($first, @signers) = sort { $a <=> $b } keys %$holders;
                kill KILL => @signers;
                is curl($server, $name, $server->url . 'small.txt')->{out}, $small, "$case: a document after the death of all signers";
                ok until_true(sub { key_holders($server) == 1 + @signers }), "$case: signers that die are replaced";
            }
            $server->signal('HUP');
            ok until_true(sub { $server->errors =~ /was read again/ }), "$case: the files can be read again";
            is curl($server, $name, $server->url . 'small.txt')->{out}, $small, "$case: a document after that";
            $server->stop(warnings => qr/was read again/);
        }
    }

    # A worker process has a signer of its own. If that dies, it gets another one.
    if ($> == 0 && (describe()->{makes} // '') eq 'processes' && describe()->{workers_per_processor}) {
        $server = start_server(root => $root, options => [tls_options('first'), '--workers', 1]);
        my $holders = 2 + run_command(qw(getconf _NPROCESSORS_ONLN))->{out};    # the supervisor, and those of the worker and the processors
        my $nobody_stays = sub { !signers_that_stay($server) && key_holders($server) == $holders };
        for my $death ('', ', after the death of the first') {
            is curl($server, 'first', $server->url . 'small.txt')->{out}, $small, "a document$death" for 1, 2;
            my @stay = signers_that_stay($server);
            is scalar @stay, 1, "a signer stays with the worker$death";
            kill KILL => @stay;
            ok until_true($nobody_stays), "another one replaces it$death";
        }
        my ($worker) = grep { $_ != $server->pid } map { $_->[0] } serving_processes($server->pid);
        is curl($server, 'first', $server->url . 'small.txt')->{out}, $small, 'a document before the death of the worker' for 1, 2;
        is scalar(() = signers_that_stay($server)), 1, 'a signer stays with the worker that will die';
        kill KILL => $worker;
        ok until_true($nobody_stays), 'the signer of a worker that dies is free';
        is curl($server, 'first', $server->url . 'small.txt')->{out}, $small, 'a document by the next worker' for 1, 2;
        my @stay = signers_that_stay($server);
        is scalar @stay, 1, 'a signer stays with the next worker';

        # A signer that does not respond keeps its place. The worker goes on with those that all share.
        kill STOP => @stay;
        is curl($server, 'first', $server->url . 'small.txt')->{status}, 35, 'a handshake whose signer does not respond fails';
        is curl($server, 'first', $server->url . 'small.txt')->{out}, $small, 'the next one finds another signer' for 1, 2;
        kill CONT => @stay;
        ok until_true($nobody_stays), 'one that has lost its worker is free';
        $server->stop(warnings => qr/another one replaces it/);

        # A new key of another type. The stop below ends a signer that stays.
        make_certificate('changing');
        $server = start_server(root => $root, options => [tls_options('changing'), '--workers', 1]);
        is curl($server, 'changing', $server->url . 'small.txt')->{out}, $small, 'a document with the first key' for 1, 2;
        make_certificate('changing', qw(-newkey rsa:2048));
        $server->signal('HUP');
        ok until_true(sub { $server->errors =~ /was read again/ }), 'a key of another type is read';
        is curl($server, 'changing', $server->url . 'small.txt')->{out}, $small, 'a document with that key' for 1, 2;
        is scalar(() = signers_that_stay($server)), 1, 'a signer stays';
        $server->stop(warnings => qr/was read again/);
    }

    # Without any of the processes that hold the key no session begins, and the server goes on.
    $server = start_server(root => $root, options => [tls_options('first'), @workers]);
    kill KILL => key_holders($server);
    ok until_true(sub { !key_holders($server) }), 'the processes that hold the key are killed';
    is curl($server, 'first', $server->url . 'small.txt')->{status}, 35, 'without a process that signs, a handshake fails';
    is curl($server, 'first', $server->url . 'small.txt')->{status}, 35, 'and the next one fails as well';
    $server->stop;

    # The first process of a container is the parent of all orphans. It must also wait for the process with the key.
    my @container = qw(unshare --pid --fork --kill-child);
    if (run_command(@container, 'true')->{status} == 0) {
        $server = start_server(root => $root, through => \@container, environment => no_leak_search(), options => [tls_options('first'), @workers]);
        is curl($server, 'first', $server->url . 'small.txt')->{out}, $small, 'a server that is the first process of a container serves';
        kill TERM => grep { (eval { slurp("/proc/$_/status") } // '') =~ /^NSpid:.*\t1$/m } map { $_->[0] } group_processes($server->pid);
        $server->ended(name => 'a server that is the first process of a container stops');
    } else {
        skip_case('this user may not make a container');
    }

    # A server without --tls
    $server = start_server(root => $root);
    is $server->get("http://localhost:$server->{port}/small.txt")->{status}, 200, 'without --tls a target with http is served';
    is $server->get("https://localhost:$server->{port}/small.txt")->{status}, 421, 'without --tls a target with https gets 421';
    $server->stop;

    # The command line
    spit("$place/locked.key", run_command(qw(openssl pkey -aes128 -passout pass:x -in), "$place/first.key")->{out});
    have_certificate('weak', qw(-newkey rsa:1024));
    have_certificate('other');
    spit("$place/nonsense", "nonsense\n");
    POSIX::mkfifo("$place/pipe", 0600) if !-e "$place/pipe";
    my @wrong = (
        ['a pipe that nobody writes to',    "$place/first.pem", "$place/pipe", qr/holds no private key/],
        ['a certificate that is not there', "$place/none", "$place/first.key", qr/cannot read the certificate .*none': No such file/],
        ['a key that is not there',         "$place/first.pem", "$place/none", qr/cannot read the key .*none': No such file/],
        ['a directory',                     "$place/first.pem", "$place", qr/cannot read the key .*Is a directory/],
        ['a malformed certificate',         "$place/nonsense", "$place/first.key", qr/holds no certificate/],
        ['a malformed key',                 "$place/first.pem", "$place/nonsense", qr/holds no private key/],
        ['a key of another certificate',    "$place/first.pem", "$place/other.key", qr/does not belong/],
        ['a locked key',                    "$place/first.pem", "$place/locked.key", qr/passphrase/],
        ['a weak key',                      "$place/weak.pem", "$place/weak.key", qr/too small/],
    );
    for my $case (@wrong) {
        my ($name, $certificate, $key, $said) = @$case;
        my $end = run_server('--tls', '--cert', $certificate, '--key', $key, 0);
        is $end->{status}, 1, "$name is refused with exit status 1";
        like $end->{err}, qr/^[^\n]*$said[^\n]*\n\z/, "$name is refused with one line that says why" or diag($end->{err});
    }
    is run_server('--cert', "$place/first.pem", 0)->{status}, 2, '--cert without --tls is refused with exit status 2';

    # In the sandbox, as an unprivileged user
    return if sanitized();
    chmod 0600, "$place/first.key";
    my @user = $> == 0 && getpwnam 'nobody' ? qw(--user nobody) : ();
    $server = start_server(root => $root, sandbox => 1, options => [tls_options('first'), @user, @workers]);
    is curl($server, 'first', $server->url . 'small.txt')->{out}, $small, "in the sandbox @user: the server serves a document";
    my $renewed = make_certificate('first');
    chmod 0600, "$place/first.key";
    $server->signal('HUP');
    ok until_true(sub { $server->errors =~ /was read again/ }), "in the sandbox @user: SIGHUP reloads a key that only root may read";
    is serial_of($server), $renewed, "in the sandbox @user: clients get the new certificate";
    is join(' ', map { slurp("/proc/$_/status") =~ /^Seccomp:\s*2$/m ? () : $_ } key_holders($server)), '',
        "in the sandbox @user: the processes that hold the key have a filter of system calls";
    $server->stop(warnings => qr/sandbox|landlock|certificate/i);
    $server = start_server(root => $root, sandbox => 1, options => [tls_options('first'), @user, @workers, qw(--key-process off)]);
    my @readers = helpers($server, 'key_reader');
    is scalar(grep { slurp("/proc/$_/status") =~ /^Seccomp:\s*2$/m } @readers), 1,
        "in the sandbox @user: the process that reads the key has a filter of system calls";
    $server->signal('HUP');
    ok until_true(sub { $server->errors =~ /was read again/ }), "in the sandbox @user: that process reads both files";
    is_deeply [helpers($server, 'key_reader')], \@readers, "in the sandbox @user: that process goes on";
    $server->stop(warnings => qr/sandbox|landlock|certificate/i);
    $serial = 0;
    make_certificate('first');
});

# Starts a TLS client and waits for its handshake. `ask` sends a request and returns all that the client has printed. With
# $stalls_on it requests that document at once and never reads; `end` kills it.
sub waiting_client ($server, $stalls_on = undef) {
    pipe my $from, my $to or die "pipe: $!\n";
    pipe my $output, my $output_end or die "pipe: $!\n";
    my $pid = fork // die "fork: $!\n";
    if ($pid == 0) {
        open STDIN,  '<&', $from;
        open STDOUT, '>&', $output_end;
        open STDERR, '>&', $output_end;
        exec @client, qw(-ign_eof -connect), "$server->{host}:$server->{port}";
    }
    close $from;
    close $output_end;
    my $said = '';
    until_true(sub { IO::Select->new($output)->can_read(0.1) && sysread $output, $said, 65536, length $said; $said =~ /^SSL handshake has/m });
    syswrite $to, request(GET => $stalls_on, Connection => 'close') if $stalls_on;
    return {
        ask => sub {
            syswrite $to, $last;
            close $to;
            1 while sysread $output, $said, 65536, length $said;
            waitpid $pid, 0;
            return $said;
        },
        end => sub { kill KILL => $pid; waitpid $pid, 0 },
    };
}

done_testing;
