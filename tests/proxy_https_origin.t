#!/usr/bin/perl
# A reverse proxy before an origin of https: it checks the certificate and its name, and takes nothing from a session that was
# broken off.
use v5.36;
use FindBin;
use lib "$FindBin::Bin/lib";
use Harness;
use IO::Socket::IP   ();
use ProxyFields;

my %left;    # processes of OpenSSL
my $folder = scratch();
my $big    = join '', map { chr($_ * 7 % 251) } 1 .. 3_000_000;
my $root   = tree('small.txt' => 'small', 'big.bin' => $big);

utime 1e9, 1e9, "$root/big.bin";    # so that it is fresh in a cache

# Makes a certificate, which is its own authority.
sub certificate ($name, @how) {
    run_command(qw(openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj /CN=localhost -days 2), '-keyout', "$folder/$name.key", '-out', "$folder/$name.pem", @how);
    chmod 0644, "$folder/$name.key", "$folder/$name.pem";
}
chmod 0755, "$folder";
certificate('good', -addext => 'subjectAltName=DNS:localhost,DNS:*.a.localhost,IP:127.0.0.1');
certificate('other', -addext => 'subjectAltName=DNS:localhost');
certificate('unnamed');

sub start_origin (@options) { return start_server(root => $root, options => [@options]) }
sub secure ($name) { return ('--tls', '--cert', "$folder/$name.pem", '--key', "$folder/$name.key") }

sub start_proxy ($url, @options) {
    return start_server(options => ['--service', 'proxy', '--origin', $url, '--origin-ca', "$folder/good.pem", grep({ $_ eq '--cache' } @options) ? () : '--no-cache', @options]);
}

# Returns the status and the body, or the sentence of an error page.
sub outcome ($url, $path = '/small.txt', @options) {
    my $proxy    = start_proxy($url, @options);
    my $response = $proxy->get($path);
    $proxy->stop(%few);
    my $body = $response->{body} =~ /<p>(.*)<\/p>/ ? $1 : $response->{body};
    return "$response->{status} $body";
}

# A server of OpenSSL with these options, which sends a response as soon as a client comes, and dies without ending the session.
sub start_openssl ($response, @options) {
    my $probe = IO::Socket::IP->new(LocalHost => '127.0.0.1', LocalPort => 0, Listen => 1) or die "$@\n";
    my $port  = $probe->sockport;
    close $probe;
    pipe my $input, my $input_end or die "pipe: $!\n";
    spit("$folder/openssl.out", '');
    my $pid = fork // die "fork: $!\n";
    if ($pid == 0) {
        open STDIN, '<&', $input or die "stdin: $!\n";
        open STDOUT, '>', "$folder/openssl.out" or die "stdout: $!\n";
        open STDERR, '>&', \*STDOUT or die "stderr: $!\n";
        exec 'openssl', 's_server', '-accept', "127.0.0.1:$port", '-cert', "$folder/good.pem", '-key', "$folder/good.key", @options or die "exec: $!\n";
    }
    $left{$pid} = 1;
    syswrite $input_end, $response;
    until_true(sub { slurp("$folder/openssl.out") =~ /ACCEPT/ });
    return { pid => $pid, port => $port, input => $input_end };
}

sub stop_openssl ($openssl) {
    kill KILL => $openssl->{pid};
    waitpid $openssl->{pid}, 0;
    delete $left{ $openssl->{pid} };
}

END { kill KILL => keys %left if %left }

each_server(sub ($model) {
    my $origin = start_origin(secure('good'), '--stats', "$folder/stats");
    my $port   = $origin->port;

    is outcome("https://localhost:$port"), '200 small', 'an origin of https is asked by the name of its certificate';
    is outcome("https://127.0.0.1:$port"), '200 small', 'or by its address';
    is outcome("https://b.a.localhost:$port"), '200 small', 'or by a name that a wildcard stands for';
    is outcome("https://b.localhost:$port"), '502 The certificate of the origin is for another name.', 'a certificate for another name is refused';
    is outcome("https://localhost:$port", '/small.txt', '--origin-ca', "$folder/other.pem"), '502 The certificate of the origin is not trusted.', 'a certificate of another authority is refused';
    ok outcome("https://localhost:$port", '/big.bin') eq "200 $big", 'a long body comes whole';
    is outcome("http://localhost:$port") =~ /^(\d+)/ && $1, 400, 'an origin of https is not asked by http unless the URL says so';

    my $proxy = start_proxy("https://localhost:$port", $model->{workers} ? ('--workers', 1) : ());
    like $proxy->{ready}, qr{serves as a proxy for https://localhost:$port/}, 'the ready line names the origin';
    my $client = $proxy->connect;
    is $client->ask(request(GET => '/small.txt'))->{body}, 'small', "request $_ on a connection" for 1 .. 5;
    $client->close;
    $proxy->stop(%few);
    my $cache = scratch();
    $proxy = start_proxy("https://localhost:$port", '--cache', "$cache");
    # Whether it is stored before its head leaves is chance: it is long.
    like cache_status($proxy->get('/big.bin')), qr/^fwd=uri-miss; fwd-status=200/, 'responses of https are fetched';
    my $stored = $proxy->get('/big.bin');
    like cache_status($stored), qr/^hit/, 'responses of https are stored';
    ok $stored->{body} eq $big, 'responses of https are served from the cache';
    $proxy->stop(%few);
    $origin->stop;
    is json("$folder/stats")->{connections}, 9, 'sessions are kept for further requests';

    # --- origins that are not what they should be ---
    $origin = start_origin();
    is outcome('https://localhost:' . $origin->port), '502 The origin does not speak TLS.', 'an origin that speaks no TLS gets no request';
    $origin->stop;
    $origin = start_origin(secure('unnamed'));
    is outcome('https://localhost:' . $origin->port, '/small.txt', '--origin-ca', "$folder/unnamed.pem"), '502 The certificate of the origin is for another name.',
        'the subject of a certificate is no name of a host';
    $origin->stop;
    my $openssl = start_openssl('', qw(-tls1_1 -cipher ALL:@SECLEVEL=0));
    is outcome("https://localhost:$openssl->{port}"), '502 No TLS session with the origin could be made.', 'TLS 1.1 is refused';
    stop_openssl($openssl);

    # --- a session that is broken off ---
    for (['until the end', "HTTP/1.1 200 OK\r\nServer: s\r\n\r\npart", 4], ['with a length', "HTTP/1.1 200 OK\r\nServer: s\r\nContent-Length: 9\r\n\r\npart", 4]) {
        my ($what, $bytes) = @$_;
        $openssl = start_openssl($bytes);
        $proxy   = start_proxy("https://localhost:$openssl->{port}");
        $client  = $proxy->connect;
        $client->send(request(GET => '/x'));
        until_true(sub { $client->fill(0.01); $client->pending =~ /part/ });
        stop_openssl($openssl);
        my $got = $client->drain;
        ok $got =~ /part/ && $got !~ /\r\n0\r\n\r\n\z/, "a body $what of a session that was broken off is not taken for a whole one";
        $client->close;
        $proxy->stop(%few);
    }

    # --- the command line ---
    for my $case (["$folder/none.pem", 'No such file or directory'], ['/dev/null', 'no certificate or crl found']) {
        my ($bad, $why) = @$case;
        my $run = run_server('--service', 'proxy', '--no-cache', '--origin', 'https://localhost:1', '--origin-ca', $bad, 0);
        is $run->{status}, 1, "--origin-ca $bad is refused with exit status 1";
        like $run->{err}, qr/cannot read the certificates of authorities '\Q$bad\E': $why$/m, "--origin-ca $bad is refused with a reason";
    }
});

done_testing;
