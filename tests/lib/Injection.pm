# Failures that strace makes in running processes.
package Injection;
use v5.36;
use Exporter 'import';
use Harness;
use POSIX qw(WNOHANG);
our @EXPORT = qw(inject);

# Makes a call fail in the processes, in the words of `strace -e inject=`: sendto:signal=KILL:when=1. Each thread counts
# its own calls, and with `follow` so does each child. Returns the process of strace, which ends with the others;
# nothing if strace cannot be used.
sub inject ($failure, $processes, %how) {
    my @processes = @$processes;
    my ($call) = $failure =~ /\A(\w+)/;
    my $tracer = fork // die "fork: $!\n";
    if ($tracer == 0) {
        open STDERR, '>', '/dev/null';
        { no warnings 'exec'; exec 'strace', $how{follow} ? '-f' : (), '-o', '/dev/null', '-e', "trace=$call", '-e', "inject=$failure", map { ('-p', $_) } @processes }
        POSIX::_exit(127);
    }
    my $attached = sub { !grep { (eval { slurp($_) } // '') =~ /^TracerPid:\t0$/m } map { glob "/proc/$_/task/*/status" } @processes };
    my $ended;
    until_true(sub { $attached->() || ($ended = waitpid($tracer, WNOHANG) != 0) });
    return $ended ? undef : $tracer;
}

1;
