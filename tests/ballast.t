#!/usr/bin/perl
# --ballast: the server holds that much memory that was written to, and serves as it does without; what it refuses.
use v5.36;
use FindBin;
use lib "$FindBin::Bin/lib";
use Harness;

my $KIBIBYTES = 32 * 1024;

# Returns a measure of the first process's memory, in KiB.
sub memory ($server, $what) {
    return slurp('/proc/' . $server->pid . '/smaps_rollup') =~ /^$what: +(\d+) kB/m ? $1 : 0;
}

# Returns true if the kernel gives huge pages to a process that asks.
sub has_huge_pages () {
    my $setting = eval { slurp('/sys/kernel/mm/transparent_hugepage/enabled') } // '';
    return $setting =~ /\[(?:always|madvise)\]/;
}

each_server(sub ($model) {
    my $server = start_server(options => ['--ballast', '32M']);
    is $server->get('/small.txt')->{status}, 200, 'a request gets 200';
    cmp_ok memory($server, 'Anonymous'), '>=', $KIBIBYTES, 'the server holds the ballast';
    cmp_ok memory($server, 'AnonHugePages'), '<', $KIBIBYTES / 2, 'its pages are small';
    like $server->{printed}, qr/; with $KIBIBYTES KiB of ballast/, 'the ready line tells of it';
    $server->stop;

    my $plain = start_server();
    cmp_ok memory($plain, 'Anonymous'), '<', $KIBIBYTES, 'there is none without the option' if !sanitized();
    unlike $plain->{printed}, qr/ballast/, 'the ready line says nothing of it';
    $plain->stop;

    if (has_huge_pages()) {
        $server = start_server(options => [qw(--ballast 32M --ballast-pages huge)]);
        cmp_ok memory($server, 'AnonHugePages'), '>=', $KIBIBYTES / 2, '--ballast-pages huge: most of its pages are huge';
        $server->stop;
    } else {
        skip_case('this kernel gives no huge pages');
    }

    my $refused = run_server('--ballast', '1000000G', '0');
    is $refused->{status}, 1, 'more than the machine has: exit status 1';
    like $refused->{err}, qr/\A[^\n]*cannot have a ballast[^\n]*\n\z/, 'more than the machine has: one line says so';
    is run_server('--ballast', 'much', '0')->{status}, 2, '--ballast much is refused';
    is run_server(qw(--ballast 1M --ballast-pages large 0))->{status}, 2, '--ballast-pages large is refused';
    is run_server(qw(--ballast-pages huge 0))->{status}, 2, '--ballast-pages huge without --ballast is refused';
});

done_testing;
