#!/usr/bin/perl
# A file of 1 GiB (and one of 5 GiB, by ranges) is served whole and with constant memory.
use v5.36;
use FindBin;
use lib "$FindBin::Bin/lib";
use Harness;

my $size = 1 << 30;
my $zeros = "\0" x (1 << 20);    # longer than what is read at once; to compare takes a tenth of the time that tr takes
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

# Returns the peak memory of the largest process of the server, in KiB.
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
        skip_case('a sanitized server takes too long for 1 GiB');
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
            $other++ if $connection->{buffer} ne substr $zeros, 0, length $connection->{buffer};
            $connection->{buffer} = '';
            if ($total - $looked > $size / 8) {
                my $now = peak($server);
                $peak = $now if $now > $peak;
                $looked = $total;
            }
        }
        is $length, $size, '1 GiB: Content-Length is the size of the file';
        is $total, $size, '1 GiB: the whole file arrives';
        is $other, 0, '1 GiB: every byte is a zero, as in the file';
        ok $peak > 0, '1 GiB: the test read the peak memory during the transfer';
        cmp_ok $peak, '<', $before + 4096, "1 GiB: the server takes less than 4 MiB more memory ($before KiB before, at most $peak KiB during the transfer)";
    }

    my $head = $server->head('/huge.bin');
    is $head->field('Content-Length'), $huge, '5 GiB: HEAD gives the size of the file';
    my $middle = $server->get('/huge.bin', Range => 'bytes=' . 4 * $size . '-' . (4 * $size + 11));
    is $middle->{status}, 206, '5 GiB: a range beyond 4 GiB gets 206';
    is $middle->{body}, 'over 32 bits', '5 GiB: a range beyond 4 GiB gets the right bytes';
    is $server->get('/huge.bin', Range => 'bytes=-3')->{body}, 'end', '5 GiB: a suffix range gets the last bytes';
    is $server->get('/huge.bin', Range => "bytes=$huge-")->{status}, 416, '5 GiB: a range beyond the end is refused with 416';
    my $parts = $server->get('/huge.bin', Range => 'bytes=0-0,' . 4 * $size . '-' . (4 * $size + 3) . ',-3');
    is_deeply [map { $_->[1] } eval { parse_parts($parts) }], ["\0", 'over', 'end'], '5 GiB: several ranges get the right bytes';
    $server->stop;
});

done_testing;
