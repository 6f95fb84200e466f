# shellcheck shell=bash disable=SC2034 # work goes out
# scratch.sh: a folder for temporary files that does not outlive its owner for long. A library: source it.
#
# usage:    scratch_begin; ...use $work...; scratch_end
#
# Its owner holds a lock on it, which the kernel takes away with the last of its processes, however they end. What was killed
# and could not clean up is found by the next one, as a folder that nobody holds.

scratch_begin() {
    local folder all=${TMPDIR:-/tmp}
    for folder in "$all"/fork-vs-thread.work.??????; do
        if [[ -d $folder && ! -L $folder && -O $folder ]] && flock -n "$folder" true 2>/dev/null; then rm -rf -- "$folder"; fi
    done
    # Under another name until it is locked, so that nobody takes it for one that was left.
    folder=$(mktemp -d "$all/fork-vs-thread.new.XXXXXX")
    work=$all/fork-vs-thread.work.${folder##*.}
    exec {scratch_lock}<"$folder"
    flock -n "$scratch_lock"
    mv -T -- "$folder" "$work"
}

scratch_end() {
    if [[ ${work:-} ]]; then rm -rf -- "$work"; fi
}
