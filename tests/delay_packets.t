#!/usr/bin/perl
# delay, the program of the study that carries packets from one network namespace to another, some time later.
use v5.36;
use FindBin;
use lib "$FindBin::Bin/lib";
use Harness;
use StudyClients;

my $program = "$FindBin::Bin/../collect/clients/delay_packets";

for my $case (['no arguments'], ['a delay alone', 60], ['another option', '--out', '/proc/self/ns/net', 60]) {
    my ($name, @arguments) = @$case;
    my $run = run_command($program, @arguments);
    ok $run->{status} == 2 && $run->{err} =~ /^usage: delay/ && $run->{out} eq '', "$name: refused with status 2 and the usage" or diag($run->{err});
}
for my $delay ('', 'x', -1, 10_001) {
    my $run = run_command($program, '--into', '/proc/self/ns/net', $delay);
    ok $run->{status} == 2 && $run->{err} =~ /the delay is a number from 0 to 10000/, "a delay of '$delay' is refused" or diag($run->{err});
}
like run_command($program, '--help')->{out}, qr/^usage: delay/, '--help explains it';

# A namespace of its own for this test, which has loopback and the two devices alone.
my $can = $> == 0 && -w '/dev/net/tun' && system('unshare', '--net', '--', 'true') == 0;
if (!$can) {
    skip_case('it needs root and TUN devices');
    done_testing;
    exit;
}

# Both devices are in one namespace here: a packet to 192.0.2.9 goes into delay-in, and comes out of delay-out.
my $script = <<'END';
ip link set lo up
mkfifo "$1/words"
"$0" --into /proc/self/ns/net 30 <"$1/words" >"$1/said" 2>"$1/errors" &
exec 4>"$1/words"
until grep -q ready "$1/said" || ! kill -0 $!; do sleep 0.05; done
ip address add 192.0.2.2/32 dev delay-in
ip link set delay-out up    # first: once the other is up, the kernel sends packets of its own
ip link set delay-in up
ip route add 192.0.2.9/32 dev delay-in
python3 - "$1" 4 <<'PYTHON'
import socket, sys, time
sys.stdout = open(sys.argv[1] + "/times", "w")
# A raw socket at delay-out sees each packet that comes out of it.
seen = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(0x0800))
seen.bind(("delay-out", 0))
sender = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
for delay in (30, 10):
    if delay != 30:
        with open("/dev/fd/4", "w") as words:
            words.write(f"{delay}\n")
        while open(sys.argv[1] + "/said").read().count("ready") < 2:
            time.sleep(0.02)
    for number in range(20):
        begin = time.monotonic()
        sender.sendto(b"%d of %d" % (number, delay), ("192.0.2.9", 9))
        seen.settimeout(30)
        while b"%d of %d" % (number, delay) not in seen.recv(2000):
            pass
        print(delay, 1000 * (time.monotonic() - begin), flush=True)
PYTHON
exec 4>&-
wait
END
my $folder = scratch();
my $run = run_command('unshare', '--net', '--', 'bash', '-c', $script, $program, $folder);
is $run->{status}, 0, 'it ends when its standard input does' or diag($run->{err}, slurp("$folder/errors"));
my (%least, %count);
for (split /\n/, slurp("$folder/times")) {
    my ($delay, $time) = split;
    $count{$delay}++;
    $least{$delay} = $time if !defined $least{$delay} || $time < $least{$delay};
}
is_deeply \%count, { 30 => 20, 10 => 20 }, 'every packet arrives';
cmp_ok $least{30}, '>=', 30, 'none sooner than after its delay';
cmp_ok $least{10}, '>=', 10, 'nor after a delay that was given later';
cmp_ok $least{10}, '<', $least{30}, 'which is shorter';
my ($carried, $dropped) = slurp("$folder/said") =~ /^(\d+) (\d+) \d+ \d+$/m;
cmp_ok $carried // 0, '>=', 40, 'it tells how many packets it has carried';
is $dropped, 0, 'and that it dropped none';
done_testing;
