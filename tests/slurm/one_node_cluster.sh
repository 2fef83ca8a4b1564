#!/usr/bin/env bash
# A Slurm cluster of one node, all of it below one directory: munge, a controller, a node.
#
#   tests/slurm/one_node_cluster.sh up DIR      start it; then `export SLURM_CONF=DIR/slurm.conf`
#   tests/slurm/one_node_cluster.sh down DIR    cancel its jobs, end its processes, delete DIR
#
# Needs root and Debian's slurm-wlm and munge (apt-get install slurm-wlm munge); touches no cluster that is here already.
# DIR is new, and short: a socket lies in it. There is no accounting, so sacct knows nothing, as on many small clusters,
# and jobs are not requeued unless they ask for it.
set -Eeuo pipefail

usage() { echo "usage: $0 up|down DIR" >&2; exit 2; }
[ $# -eq 2 ] || usage
case $2 in /*) DIR=$2 ;; *) DIR=$PWD/$2 ;; esac
export SLURM_CONF=$DIR/slurm.conf
PATH=$PATH:/usr/sbin:/sbin

require_tools() {
  [ "$(id -u)" -eq 0 ] || { echo "a cluster's daemons need root" >&2; exit 3; }
  for tool in munged slurmctld slurmd sbatch srun squeue scancel scontrol sinfo; do
    command -v "$tool" >/dev/null || { echo "$tool is missing: apt-get install slurm-wlm munge" >&2; exit 3; }
  done
}

# A port from $1 on that nothing answers at.
free_port() {
  local port=$1
  while (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null; do port=$((port + 1)); done
  echo "$port"
}

write_configuration() {
  local name controller node
  name=$(hostname -s)
  controller=$(free_port $((20000 + RANDOM % 5000)))
  node=$(free_port $((26000 + RANDOM % 5000)))
  cat >"$SLURM_CONF" <<END
ClusterName=one
SlurmctldHost=$name(127.0.0.1)
SlurmctldPort=$controller
SlurmdPort=$node
SlurmUser=root
AuthType=auth/munge
# A requeued job waits for cred_expire seconds, two minutes where nothing is said.
AuthInfo=socket=$DIR/munge.socket,cred_expire=5
CredType=cred/munge
StateSaveLocation=$DIR/state
SlurmdSpoolDir=$DIR/spool
SlurmctldPidFile=$DIR/slurmctld.pid
SlurmdPidFile=$DIR/slurmd.pid
SlurmctldLogFile=$DIR/slurmctld.log
SlurmdLogFile=$DIR/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SwitchType=switch/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SchedulerParameters=sched_interval=2,batch_sched_delay=0
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
JobCompType=jobcomp/none
JobRequeue=0
MailProg=/bin/true
ReturnToService=2
GresTypes=place
# More than the machine may have, so that it is not for lack of them that jobs wait.
SlurmdParameters=config_overrides
NodeName=$name NodeAddr=127.0.0.1 CPUs=4 Gres=place:4 State=UNKNOWN
PartitionName=main Nodes=$name Default=YES MaxTime=INFINITE State=UP
END
  echo "Name=place Count=4" >"$DIR/gres.conf"
  # Nothing of it is used, but the node loads it, and this one asks nothing of the system by that.
  echo "CgroupPlugin=cgroup/v1" >"$DIR/cgroup.conf"
}

# Until the words after $1 succeed; failure after $1 tries, one a second.
wait_until() {
  local left=$1
  shift
  until "$@"; do
    left=$((left - 1))
    [ "$left" -gt 0 ] || { echo "gave up waiting for: $*" >&2; return 1; }
    sleep 1
  done
}

node_is_idle() { [ "$(sinfo --noheader --format=%T 2>/dev/null)" = idle ]; }
no_jobs() { [ -z "$(squeue --noheader 2>/dev/null)" ]; }

# The numbers of the daemons of this cluster and of what they started for jobs, by a variable that they inherit.
own_processes() {
  grep -lszxF "MTL_ONE_NODE_CLUSTER=$DIR" /proc/[0-9]*/environ | cut -d/ -f3 | grep -vx $$ || true
}

up() {
  require_tools
  mkdir -m 755 "$DIR"
  mkdir "$DIR/state" "$DIR/spool"
  write_configuration
  (umask 077 && head -c 1024 /dev/urandom >"$DIR/munge.key")
  export MTL_ONE_NODE_CLUSTER=$DIR
  trap 'for log in "$DIR"/*.log; do tail -n 20 "$log" >&2; done; down' ERR
  munged --force --key-file="$DIR/munge.key" --socket="$DIR/munge.socket" --pid-file="$DIR/munged.pid" \
    --log-file="$DIR/munged.log" --seed-file="$DIR/munged.seed"
  slurmctld -c -f "$SLURM_CONF"
  slurmd -c -f "$SLURM_CONF"
  wait_until 60 node_is_idle
}

down() {
  local pid
  [ -d "$DIR" ] || return 0
  [ -f "$SLURM_CONF" ] || { echo "$DIR holds no cluster" >&2; exit 2; }
  if sinfo >/dev/null 2>&1; then
    scancel --user=root
    scancel --user=root --signal=KILL
    wait_until 60 no_jobs || true
  fi
  for signal in TERM KILL; do
    for pid in $(own_processes); do kill -s "$signal" "$pid" 2>/dev/null || true; done
    for _ in 1 2 3 4 5 6 7 8 9 10; do
      [ -n "$(own_processes)" ] || break 2
      sleep 1
    done
  done
  rm -rf "$DIR"
}

case $1 in up) up ;; down) down ;; *) usage ;; esac
