#!/usr/bin/perl
# A reverse proxy whose origin has a name that is looked up: it follows the name without a restart, and not to addresses that the
# name must not lead to.
#
# The test runs in a network namespace whose loopback interface has other addresses than those of loopback.
use v5.36;
use FindBin;
use lib "$FindBin::Bin/lib";
use Harness;
use IO::Socket::IP ();
use Origin;
use POSIX ();
use ProxyFields;
use Socket qw(inet_aton);

my @ways = (['unshare', '--net'], ['unshare', '--net', '--map-root-user']);
my $setup = 'ip link set lo up && ip addr add 192.0.2.1/24 dev lo && ip addr add 192.0.2.2/32 dev lo && ip addr add 10.9.8.7/32 dev lo && exec "$@"';
if (!$ENV{TEST_FAR}) {
    for my $way (@ways) {
        next if run_command(@$way, 'sh', '-c', $setup, 'sh', 'true')->{status} != 0;
        $ENV{TEST_FAR} = $> == 0 ? 'as root' : 'as the only user';
        exec @$way, 'sh', '-c', $setup, 'sh', $^X, $0 or die "exec: $!\n";
    }
}
if (!$ENV{TEST_FAR}) {
    each_server(sub ($model) { skip_case('no network namespace can be made here') });
    done_testing;
    exit 0;
}

# --- A name server: it reads its answer from a file, and adds a byte to another file for each question over UDP ---

my $folder = scratch();
my ($zone, $asked) = ("$folder/zone", "$folder/asked");
my $socket = IO::Socket::IP->new(LocalHost => '127.0.0.1', LocalPort => 0, Proto => 'udp') or die "$@\n";
my $server = '127.0.0.1:' . $socket->sockport;
my $parent = $$;

# Sets the answer to each question: addresses, which may follow a word. "none": there is no such name. "forged": wrong
# answers come before the right one. "long": the answer over UDP is truncated and has no record; that over TCP is whole.
# "cut": the answer over UDP is truncated behind these addresses, and none comes over TCP. "alias", "failure" and
# "silence" are what they say.
sub set_zone (@answer) { spit("$zone.new", "@answer"); rename "$zone.new", $zone or die "$zone: $!\n" }
sub questions () { return -e $asked ? -s $asked : 0 }

sub record ($name, $type, $data) { return $name . pack 'nnNn/a*', $type, 1, 1, $data }

sub answer_to ($number, $question, $result, @records) {
    return pack('nnnnnn', $number, 0x8180 | $result, 1, scalar @records, 0, 0) . $question . join '', @records;
}

sub answer ($message, $stream = 0) {
    my ($number) = unpack 'n', $message;
    my $question = substr $message, 12;
    my $type     = unpack 'n', substr $question, -4, 2;
    my @answer   = split / /, slurp($zone);
    my $name     = pack 'n', 0xc00c;
    my @replies;
    push @replies, answer_to($number ^ 1, $question, 0, record($name, 1, inet_aton('192.0.2.99'))),
        answer_to($number, "\x05other\x00\x00\x01\x00\x01", 0, record($name, 1, inet_aton('192.0.2.99'))) if $answer[0] eq 'forged';
    my $result = $answer[0] eq 'none' ? 3 : $answer[0] eq 'failure' ? 2 : 0;
    my @records;
    if ($answer[0] eq 'alias') {
        push @records, record($name, 5, "\x04real\xc0" . chr(12 + 7)) if $type == 1;
        $name = "\x04real\xc0" . chr(12 + 7);
    }
    push @records, map { record($name, 1, inet_aton($_)) } grep { /^\d/ } @answer if $type == 1;
    my $truncated = !$stream && $answer[0] =~ /long|cut/ ? 0x0200 : 0;
    @records = () if $truncated && $answer[0] eq 'long';
    push @replies, answer_to($number, $question, $result | $truncated, @records) if $answer[0] ne 'silence';
    return @replies;
}

my $listener = IO::Socket::IP->new(LocalHost => '127.0.0.1', LocalPort => $socket->sockport, Listen => 5, ReuseAddr => 1) or die "$@\n";
my $stream_server = fork // die "fork: $!\n";
if ($stream_server == 0) {
    while (kill 0 => $parent) {
        my $client = $listener->accept or next;
        next if slurp($zone) =~ /^cut/;
        sysread $client, my $message, 2 + 512;
        syswrite $client, pack 'n/a*', (answer(substr($message, 2), 1))[0];
    }
    POSIX::_exit(0);
}

my $pid = fork // die "fork: $!\n";
if ($pid == 0) {
    while (kill 0 => $parent) {
        my $from = recv $socket, my $message, 512, 0;
        next if !defined $from;
        open my $log, '>>', $asked or die "$asked: $!\n";
        print {$log} 'x';
        close $log;
        send $socket, $_, 0, $from for answer($message);
    }
    POSIX::_exit(0);
}
END { kill KILL => $pid, $stream_server if $pid && $stream_server && $$ == $parent }

# --- The origins: the same port of several addresses ---

my %origins = ('192.0.2.1' => Origin->new(host => '192.0.2.1'));
my $port = $origins{'192.0.2.1'}->port;
$origins{$_} = Origin->new(host => $_, port => $port) for qw(192.0.2.2 10.9.8.7 127.0.0.1);
my @user = $ENV{TEST_FAR} eq 'as the only user' ? qw(--user root) : ();
my @options = ('--service', 'proxy', '--no-cache', '--origin', "http://origin.test:$port", '--name-server', $server, @user);

sub start_proxy (@more) { return start_server(options => [@options, @more]) }

sub says ($proxy) { my $response = $proxy->get('/'); return $response->{status} == 200 ? $response->{body} : $response->{status} }

# Waits until the proxy says that. Returns what it says in the end.
sub comes_to_say ($proxy, $what) {
    my $said;
    until_true(sub { $said = says($proxy); $said eq $what });
    return $said;
}

each_server(sub ($model) {
    $origins{$_}->play('/', response(200, $_)) for keys %origins;

    set_zone('192.0.2.1');
    my $proxy = start_proxy();
    is says($proxy), '192.0.2.1', 'the origin has the address that the name server tells';
    set_zone('192.0.2.2');
    is comes_to_say($proxy, '192.0.2.2'), '192.0.2.2', 'a name that changes is followed without a restart';
    set_zone('127.0.0.1');
    is comes_to_say($proxy, 403), 403, 'a name does not lead to this machine';
    set_zone('10.9.8.7');
    my $before = questions();
    until_true(sub { questions() > $before + 3 });
    is says($proxy), 403, 'a name that was public does not lead into a private network';
    set_zone('127.0.0.1', '192.0.2.1');
    is comes_to_say($proxy, '192.0.2.1'), '192.0.2.1', 'of several addresses those are used that the name may lead to';
    is $origins{$_}->count('/'), 0, "the origin at $_ has got no request" for qw(127.0.0.1 10.9.8.7);
    my ($worker) = helper_workers($proxy->pid, 'names');
    ok $worker && kill(KILL => $worker), 'there is a process that looks the name up, which is killed';
    set_zone('192.0.2.2');
    is comes_to_say($proxy, '192.0.2.2'), '192.0.2.2', 'another process looks the name up in its place';
    set_zone('192.0.2.1');
    is comes_to_say($proxy, '192.0.2.1'), '192.0.2.1', 'it does so as often as the first one';
    set_zone('failure');
    $before = questions();
    until_true(sub { questions() > $before + 3 });
    is says($proxy), '192.0.2.1', 'while the name server fails, the last addresses are used';
    set_zone('none');
    is comes_to_say($proxy, 502), 502, 'a name that does not exist any more gets 502';
    set_zone('192.0.2.2');
    is comes_to_say($proxy, '192.0.2.2'), '192.0.2.2', 'a name that exists again is followed again';
    $proxy->stop(%few);

    for (['alias', '192.0.2.2', 'an alias is followed'], ['forged', '192.0.2.2', 'an answer to another question is not believed'],
        ['long', '192.0.2.2', 'an answer that does not fit is asked for over TCP'], ['cut', '192.0.2.1', 'where that fails, its beginning counts'],
        ['10.9.8.7', '10.9.8.7', 'a name that is private at the start may lead into a private network']) {
        my ($how, $expected, $what) = @$_;
        set_zone($how eq $expected ? $how : ($how, $expected));
        $proxy = start_proxy();
        is says($proxy), $expected, $what;
        $proxy->stop(%few);
    }

    set_zone('127.0.0.1');
    $proxy = start_proxy('--allow', "127.0.0.1:$port");
    is says($proxy), '127.0.0.1', '--allow: a name may lead to this machine';
    $proxy->stop(%few);
    for (['127.0.0.1', qr/leads to this machine/], ['none', qr/'origin\.test' is not known to the name servers/], ['failure', qr/'origin\.test' is not known to the name servers/]) {
        my ($answer, $why) = @$_;
        set_zone($answer);
        my $run = run_server(@options, 0);
        is $run->{status}, 1, "$answer at the start: the proxy does not start";
        like $run->{err}, $why, "$answer at the start: it says why";
    }
});

done_testing;
