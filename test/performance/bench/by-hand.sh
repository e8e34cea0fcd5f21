#!/usr/bin/env bash
# Moves the StatefulSet web from the cluster east to the cluster west by hand, as
# a careful person would type it: one ordinal down at a time, no volume ever
# without Retain, no needless call and no sleep. It checks nothing, records
# nothing and cannot be gone on with after it was stopped.
#
# usage: by-hand.sh KUBECTL NAMESPACE ORDINALS MANIFESTS
# MANIFESTS has the destination's objects, the set with no ordinals.
set -euo pipefail
kubectl=$1 namespace=$2 ordinals=$3 manifests=$4

east() { "$kubectl" --context east -n "$namespace" "$@"; }
west() { "$kubectl" --context west -n "$namespace" "$@"; }
budget() { east patch poddisruptionbudget web --type merge -p "{\"spec\":{\"maxUnavailable\":$1}}"; }

east patch statefulset web --type merge \
  -p '{"spec":{"persistentVolumeClaimRetentionPolicy":{"whenDeleted":"Retain","whenScaled":"Retain"}}}'
west create -f "$manifests"
echo "prepared"

move() {
  local n=$1 pod=web-$1 claim=data-web-$1 volume size driver handle class

  echo "$pod tighten the budget, hold and export the volume"
  budget 0
  volume=$(east get persistentvolumeclaim "$claim" -o jsonpath='{.spec.volumeName}')
  # What patch prints is the volume as it is now: it saves a get.
  read -r size driver handle class < <(east patch persistentvolume "$volume" \
    -p '{"spec":{"persistentVolumeReclaimPolicy":"Retain"}}' \
    -o jsonpath='{.spec.capacity.storage} {.spec.csi.driver} {.spec.csi.volumeHandle} {.spec.storageClassName}{"\n"}')

  echo "$pod stop"
  east scale statefulset web --replicas "$n"
  east wait --for=delete "pod/$pod" --timeout 5m

  echo "$pod hand the volume over"
  east delete persistentvolumeclaim "$claim"
  west create -f - <<YAML
apiVersion: v1
kind: PersistentVolume
metadata: {name: $volume}
spec:
  capacity: {storage: $size}
  accessModes: [ReadWriteOnce]
  persistentVolumeReclaimPolicy: Retain
  storageClassName: $class
  csi: {driver: $driver, volumeHandle: $handle}
  claimRef: {namespace: $namespace, name: $claim}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: $claim, labels: {app: web}}
spec:
  accessModes: [ReadWriteOnce]
  storageClassName: $class
  volumeName: $volume
  resources: {requests: {storage: $size}}
YAML
  west wait --for=jsonpath='{.status.phase}'=Bound "persistentvolumeclaim/$claim" --timeout 5m

  echo "$pod start"
  west patch statefulset web --type merge \
    -p "{\"spec\":{\"ordinals\":{\"start\":$n},\"replicas\":$((ordinals - n))}}"
  west wait --for=create --for=condition=Ready "pod/$pod" --timeout 5m

  echo "$pod relax the budget"
  budget 1
}

for ((n = ordinals - 1; n >= 0; n--)); do
  move "$n"
done
