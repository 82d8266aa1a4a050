#!/bin/sh
# A small isolation for --sandbox-command: no network, own processes, and a root with the system's programs and libraries and this
# program. PROGRAM and ARGUMENT are the two words that earnest appends.
exec unshare --user --map-root-user --mount --net --pid --ipc --fork --kill-child sh -c '
set -e
mount -t tmpfs none /mnt
for folder in usr bin sbin lib lib64; do
    if [ -L "/$folder" ]; then cp -P "/$folder" "/mnt/$folder"
    elif [ -d "/$folder" ]; then mkdir "/mnt/$folder"; mount --rbind "/$folder" "/mnt/$folder"; fi
done
mkdir /mnt/proc /mnt/dev
: > /mnt/dev/null
mount --bind /dev/null /mnt/dev/null
mount -t proc none /mnt/proc
: > /mnt/earnest
mount --bind "$1" /mnt/earnest
exec chroot /mnt /earnest "$2"
' isolate "$1" "$2"
