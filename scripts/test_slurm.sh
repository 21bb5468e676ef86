#!/usr/bin/env bash
# Runs `robustgen make-c --on slurm:...` on a real SLURM of this machine alone, which it starts and stops: one task is
# cancelled, the same command resumes it, and the set has the bytes of a run without SLURM.
#
#     scripts/test_slurm.sh
#
# Needs root, and of Debian or Ubuntu the packages slurmctld, slurmd and slurm-client; they need not be set up.
set -euo pipefail
cd "$(dirname "$0")/.."
robustgen=$(realpath -s "${VENV:-.venv}/bin/robustgen")
home=$(mktemp -d)
mkdir "$home/state" "$home/spool"
export SLURM_CONF=$home/slurm.conf
cat >"$SLURM_CONF" <<CONF
ClusterName=test
SlurmctldHost=$(hostname)
SlurmUser=root
SlurmdUser=root
AuthType=auth/none
CredType=cred/none
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
StateSaveLocation=$home/state
SlurmdSpoolDir=$home/spool
SlurmctldLogFile=$home/slurmctld.log
SlurmdLogFile=$home/slurmd.log
SlurmctldPidFile=$home/slurmctld.pid
SlurmdPidFile=$home/slurmd.pid
SlurmctldPort=16817
SlurmdPort=16818
AccountingStorageType=accounting_storage/none
SchedulerParameters=batch_sched_delay=1,sched_interval=2
NodeName=$(hostname) CPUs=$(nproc) State=UNKNOWN
PartitionName=cpu Nodes=ALL Default=YES MaxTime=INFINITE State=UP
CONF
slurmctld
slurmd
trap 'kill $(cat "$home"/*.pid); sleep 2; rm -rf "$home"' EXIT

make() {
    "$robustgen" make-c --dataset demo --limit 4 --severities 1,3 --output "$home/$1" "${@:2}"
}
slurm=slurm:partition=cpu,cpus-per-task=1,time=0:10:00,shards=4
make out --on "$slurm"
# The fourth task waits for a core, or has just begun.
scancel "$(squeue --noheader --format %F | head -1)_4"
while [[ -n $(squeue --noheader) ]]; do sleep 1; done
make out --on "$slurm" --dry-run | grep --line-regexp '#SBATCH --array=4'
make out --on "$slurm,wait"
make here --quiet
diff -r -x .robustgen -x dataset.json "$home/out" "$home/here"
echo "the same bytes with SLURM $(sbatch --version)"
