#!/usr/bin/perl
# A file of 1 GiB (and one of 5 GiB, by ranges) is served whole and with constant memory.
use v5.36;
use FindBin;
use lib "$FindBin::Bin/lib";
use Harness;

my $size = 1 << 30;
my $root = tree('giant.bin' => '', 'huge.bin' => '');
truncate "$root/giant.bin", $size or die "truncate: $!";
my $huge = 5 * $size + 7;
truncate "$root/huge.bin", $huge or die "truncate: $!";
open my $file, '+<:raw', "$root/huge.bin" or die "huge.bin: $!";
seek $file, 4 * $size, 0;
print {$file} 'over 32 bits';
seek $file, $huge - 3, 0;
print {$file} 'end';
close $file or die "huge.bin: $!";

# The most memory that one process of the server has used so far.
sub peak ($server) {
    my $most = 0;
    for my $process (group_processes($server->pid)) {
        my $status = eval { slurp("/proc/$process->[0]/status") } // next;
        $most = $1 if $status =~ /^VmHWM:\s+(\d+) kB/m && $1 > $most;
    }
    return $most;
}

each_server(sub ($model) {
    my $server = start_server(root => $root);
    my $before = peak($server);
    my $peak = 0;

    if (sanitized()) {
        skip_case('1 GiB is for the plain build');
    } else {
        my $connection = $server->connect;
        $connection->send(request(GET => '/giant.bin', Connection => 'close'));
        my ($length, $total, $looked, $other) = (0, 0, 0, 0);
        while (!$connection->{ended} && $connection->fill($PATIENCE)) {
            if (!$length) {
                $connection->{buffer} =~ s/\A.*?^Content-Length: (\d+)\r\n.*?\r\n\r\n//ms or next;
                $length = $1;
            }
            $total += length $connection->{buffer};
            $other++ if $connection->{buffer} =~ tr/\0//c;
            $connection->{buffer} = '';
            if ($total - $looked > $size / 8) {
                my $now = peak($server);
                $peak = $now if $now > $peak;
                $looked = $total;
            }
        }
        is $length, $size, '1 GiB: the length is announced';
        is $total, $size, '1 GiB: and all of it comes';
        is $other, 0, '1 GiB: and nothing but its zeros';
        ok $peak > 0, '1 GiB: memory was looked at meanwhile';
        cmp_ok $peak, '<', $before + 4096, "1 GiB: memory stays ($before KiB before, at most $peak KiB meanwhile)";
    }

    my $head = $server->head('/huge.bin');
    is $head->field('Content-Length'), $huge, '5 GiB: the length';
    my $middle = $server->get('/huge.bin', Range => 'bytes=' . 4 * $size . '-' . (4 * $size + 11));
    is $middle->{status}, 206, '5 GiB: a range behind 4 GiB: 206';
    is $middle->{body}, 'over 32 bits', '5 GiB: its bytes';
    is $server->get('/huge.bin', Range => 'bytes=-3')->{body}, 'end', '5 GiB: the last bytes';
    is $server->get('/huge.bin', Range => "bytes=$huge-")->{status}, 416, '5 GiB: behind the end: 416';
    my $parts = $server->get('/huge.bin', Range => 'bytes=0-0,' . 4 * $size . '-' . (4 * $size + 3) . ',-3');
    is_deeply [map { $_->[1] } eval { parse_parts($parts) }], ["\0", 'over', 'end'], '5 GiB: several ranges';
    $server->stop;
});

done_testing;
