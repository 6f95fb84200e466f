package StudyClients;

# Starts programs that listen, and runs the witness, for the tests of the clients of the study.

use v5.36;
use Exporter qw(import);
use File::Temp ();
use Harness;

our @EXPORT = qw(start_program witness @witness_numbers);

my @ready_lines;    # files, which live as long as the test

# Starts a program and waits until it has printed its ready line. Returns the port in that line. The program ends with the test.
sub start_program (@command) {
    my ($out, $err) = (File::Temp->new, File::Temp->new);
    push @ready_lines, $out;
    Harness::spawn(\@command, $out, $err);
    until_true(sub { slurp($out->filename) =~ /\n/ }) or die "@command does not get ready: " . slurp($err->filename) . "\n";
    return (slurp($out->filename) =~ /:(\d+)\//)[0];
}

# The numbers in the first line that the witness prints.
our @witness_numbers = qw(seconds complete lost refused unanswered non2xx length again_ms mean sd min p50 p90 p95 p99 max bytes wrong resumed protocol);

# Runs the witness. Returns what run_command() does, the numbers by their names, and `fields`, the number of words in the line.
sub witness (@arguments) {
    my $run   = run_command('collect/clients/witness', @arguments);
    my @words = split ' ', $run->{out} =~ s/\n.*//sr;
    my %number;
    @number{@witness_numbers} = @words[1 .. @witness_numbers];
    return { %$run, %number, fields => scalar @words };
}

1;
