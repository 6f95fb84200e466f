#!/usr/bin/perl
# Memory errors and leaks: valgrind finds none in a run of each server. tests/run starts this with the debug build.
use v5.36;
use FindBin;
use lib "$FindBin::Bin/lib";
use Harness;
use Origin;
use ProxyFields qw(%few);

my $place = scratch();
my $compiled = run_command('cc', '-D_GNU_SOURCE', '-O1', '-shared', '-fPIC', '-o', "$place/openat2.so", 'tests/valgrind_openat2.c');
is $compiled->{status}, 0, 'the library for valgrind is built' or diag($compiled->{err});

my $made = run_command(qw(openssl req -x509 -days 2 -nodes -subj /CN=localhost -newkey ec -pkeyopt ec_paramgen_curve:P-256 -keyout),
    "$place/key.pem", '-out', "$place/cert.pem");
is $made->{status}, 0, 'a certificate is made' or diag($made->{err});

# Returns the command of valgrind that takes leaks of these kinds for errors.
sub valgrind ($logs, $kinds) {
    # Code that runs only once is not worth a translation across its jumps: that takes a tenth longer.
    return ['valgrind', '--quiet', '--vex-guest-chase=no', '--leak-check=full', "--show-leak-kinds=$kinds", "--errors-for-leak-kinds=$kinds", '--error-exitcode=99',
        "--log-file=$logs/%p"];
}

# Tests that the reports of valgrind in a folder are there, and empty.
sub judge_reports ($logs, $name) {
    my @reports = map { [$_, slurp($_)] } grep { m{/\d+\z} } glob "$logs/*";
    ok scalar(@reports), "$name: valgrind has written a report";
    my $said = join "\n", map { $_->[1] } grep { $_->[1] =~ /\S/ } @reports;
    is $said, '', "$name: valgrind finds no error and no leak";
}

# Each process writes a report, so it must have the rights of this test's user.
my @user = $> == 0 ? qw(--user root) : ();

my $root = tree('file.txt' => 'f' x 5000, 'large.bin' => 'l' x 70_000, 'site/index.html' => 'index', 'odd & name/' => 1);

each_server(sub ($model) {
    my $logs = scratch();
    my $server = start_server(root => $root, path => $model->{path},
        through => valgrind($logs, 'all'),
        environment => { LD_PRELOAD => "$place/openat2.so" },
        options => [@user, '--no-sandbox', '--udp', '--list', '--log', "$logs/access.log", '--stats', "$logs/stats.json"]);

    like readlink('/proc/' . $server->pid . '/exe'), qr/valgrind|memcheck/, 'valgrind runs the server';
    is $server->get('/file.txt')->{status}, 200, 'under valgrind the server serves a file';
    my @responses = $server->exchange(request(GET => '/file.txt', Range => 'bytes=0-0,4000-4000') . request(GET => '/none')
            . request(GET => '/') . request(GET => '/site') . request(HEAD => '/site/')
            . request(POST => '/file.txt', 'Transfer-Encoding' => 'chunked', body => "5\r\nhello\r\n0\r\n\r\n")
            . request(GET => '/file.txt', 'X-Large' => 'x' x 20_000) . request(OPTIONS => '*')
            . request(GET => '/file.txt', 'If-None-Match' => '*', Connection => 'close'),
        qw(GET GET GET GET HEAD POST GET OPTIONS GET));
    is_deeply [map { $_->{status} } @responses], [206, 404, 200, 301, 200, 405, 200, 204, 304], 'under valgrind requests of all kinds get the right statuses';
    my $large = $server->exchange(request(GET => '/file.txt') x 200 . request(GET => '/', Connection => 'close'));
    is $large->{status}, 200, 'under valgrind the server serves pipelined requests';
    is $server->exchange("GET / HTTP/1.1\nHost: x\n\n")->{status}, 400, 'under valgrind a malformed request is refused';
    { my $gone = $server->connect; $gone->send("GET /file.txt HTTP/1.1\r\nX: " . 'x' x 9000); }
    @responses = map { $server->ask_udp($_) } request(GET => '/file.txt'), request(GET => '/large.bin'), request(GET => '/none'),
        request(GET => '/large.bin', Range => 'bytes=0-59999'), request(POST => '/', 'Content-Length' => 50_000, body => 'b' x 50_000);
    is_deeply [map { $_->{status} } @responses], [200, 403, 404, 206, 405], 'under valgrind the server serves datagrams';
    $server->datagram($_) for '', 'no request', request(GET => '/file.txt') . 'x';
    is run_command('ab', '-q', '-n', 12, '-c', $model->{single} ? 1 : 3, $server->url . 'file.txt')->{status}, 0, 'under valgrind the server serves the load of ab';
    $server->signal('USR1');
    ok until_true(sub { -s "$logs/stats.json" }), 'under valgrind the server writes statistics';
    $server->stop;

    my $origin = Origin->new;
    $origin->play('/kept', response(200, 'kept', 'Cache-Control' => 'max-age=60', Age => 50, ETag => '"1"', Vary => 'Accept'));
    $origin->play('/stale', response(200, 'stale', 'Cache-Control' => 'max-age=60, stale-while-revalidate=900', Age => 100, ETag => '"1"'),
        response(304, undef, ETag => '"1"'));
    $origin->play('/bad', ["HTTP/1.1 200 OK\r\nA\r\n\r\n"]);
    my $proxy = start_server(path => $model->{path},
        through => valgrind($logs, 'all'),
        environment => { LD_PRELOAD => "$place/openat2.so" },
        options => [@user, '--no-sandbox', '--udp', '--service', 'proxy', '--cache', "$logs/cache"]);
    @responses = map { $proxy->get($origin->url($_->[0]), @{$_}[1 .. $#$_]) } ['/kept'], ['/kept'], ['/kept', 'Cache-Control' => 'no-cache'],
        ['/kept', Range => 'bytes=0-1'], ['/stale'], ['/stale'], ['/stale'], ['/bad'], ['/none', 'Cache-Control' => 'only-if-cached'];
    is_deeply [map { $_->{status} } @responses], [200, 200, 200, 206, 200, 200, 200, 502, 504], 'under valgrind the proxy serves from its cache and from the origin';
    is $proxy->exchange(request(POST => $origin->url('/kept'), 'Content-Length' => 3, body => 'abc', Connection => 'close'))->{status}, 200,
        'under valgrind the proxy forwards a body';
    $origin->play('/large', response(200, 'l' x 70_000));
    @responses = map { $proxy->ask_udp(request(GET => $origin->url($_))) } '/kept', '/bad', '/large';
    is_deeply [map { $_->{status} } @responses], [200, 502, 403], 'under valgrind the proxy serves datagrams';
    $proxy->stop(%few);

    judge_reports($logs, 'HTTP');

    # OpenSSL holds memory until the process ends. It is reachable, and not reported here.
    my $tls_logs = scratch();
    $server = start_server(root => $root, path => $model->{path},
        through => valgrind($tls_logs, 'definite,indirect,possible'),
        environment => { LD_PRELOAD => "$place/openat2.so" },
        options => [@user, '--no-sandbox', '--tls', '--cert', "$place/cert.pem", '--key', "$place/key.pem"]);
    my @curl = (qw(curl --silent --insecure -o /dev/null -w %{http_code}));
    is run_command(@curl, $server->url . 'file.txt')->{out}, 200, 'under valgrind the server serves a file over HTTPS';
    is $server->get('/file.txt')->{status}, 400, 'under valgrind HTTP to the port of HTTPS gets 400';
    { my $gone = $server->connect; $gone->send("\x16\x03\x01\x02\x00\x01\x00\x01\xfc"); }
    $server->signal('HUP');
    ok until_true(sub { $server->errors =~ /was read again/ }), 'under valgrind the server reads a new certificate';
    is run_command(@curl, '--tls-max', '1.2', $server->url . 'file.txt')->{out}, 200, 'under valgrind the server serves TLS 1.2';
    $server->stop(warnings => qr/certificate/);
    judge_reports($tls_logs, 'HTTPS');
});

done_testing;
