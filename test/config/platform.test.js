'use strict'

const { test } = require('tap')
const { Environment } = require('../../lib/config/env')
const { detectPlatform } = require('../../lib/config/resource')

const ID = 'ab12'.repeat(16)
const POD = '6b1f2a0e-63b1-4b63-9d3b-2d1a3a0d5e55'

test('container.id: cgroup v1', async (t) => {
  for (const [runtime, cgroup] of [
    ['Docker', `12:memory:/docker/${ID}\n1:name=systemd:/docker/${ID}\n`],
    ['Docker under systemd', `11:cpu:/system.slice/docker-${ID}.scope`],
    ['Kubernetes with cgroupfs', `11:cpu:/kubepods/besteffort/pod${POD}/${ID}`],
    ['containerd', `11:cpu:/kubepods.slice/kubepods-pod1.slice/cri-containerd-${ID}.scope`],
    ['containerd with colons', `5:freezer:/kubepods-besteffort-pod1.slice:cri-containerd:${ID}`],
    ['CRI-O', `11:cpu:/kubepods.slice/crio-${ID}.scope`],
    ['Podman', `11:cpu:/machine.slice/libpod-${ID}.scope/container`],
    ['systemd inside', `11:cpu:/docker/${ID}/init.scope`],
    ['the innermost of two', `11:cpu:/docker/${'f'.repeat(64)}/docker/${ID}`],
    ['a later line', `12:pids:/\n11:cpu:/docker/${ID}`],
    ['cgroup v2 in the host\'s namespace', `0::/system.slice/docker-${ID}.scope`]
  ]) t.same(detect({}, { '/proc/self/cgroup': cgroup }), { 'container.id': ID }, runtime)
})

test('container.id: Fargate', async (t) => {
  const id = `${'0123456789abcdef'.repeat(2)}-3628904321`
  t.same(detect({}, { '/proc/self/cgroup': `9:perf_event:/ecs/b7c1/${id}` }), { 'container.id': id })
})

test('container.id: cgroup v2', async (t) => {
  for (const [runtime, line] of [
    ['Docker', `/var/lib/docker/containers/${ID}/hostname /etc/hostname rw,relatime - ext4 /dev/sda1 rw`],
    ['Docker, rootless', `/home/me/.local/share/docker/containers/${ID}/hostname /etc/hostname rw - ext4 /dev/sda1 rw`],
    ['Podman', `/containers/storage/overlay-containers/${ID}/userdata/hostname /etc/hostname rw - tmpfs tmpfs rw`]
  ]) t.same(detect({}, { '/proc/self/cgroup': '0::/\n', '/proc/self/mountinfo': `1 2 0:1 / / rw - overlay overlay rw\n3 2 8:1 ${line}\n` }), { 'container.id': ID }, runtime)
})

test('without a container there is no container.id', async (t) => {
  for (const cgroup of ['', '0::/', '0::/user.slice/user-1000.slice/session-1.scope', `0::/docker/${ID.slice(1)}`, `0::/docker/${ID}a`, `0::/docker/${ID.toUpperCase()}`, `0::/${ID}x.scope`]) {
    t.same(detect({}, { '/proc/self/cgroup': cgroup }), {}, cgroup)
  }
  // Files of another container, as a host with Docker mounts them, and the pod's sandbox.
  for (const line of [`/var/lib/docker/containers/${ID}/mounts/shm /dev/shm rw`, `/var/lib/containerd/sandboxes/${ID}/hostname /etc/hostname rw`, `/var/lib/docker/containers/${ID}/hostname /etc/hostname2 rw`]) {
    t.same(detect({}, { '/proc/self/cgroup': '0::/', '/proc/self/mountinfo': `3 2 8:1 ${line} - ext4 /dev/sda1 rw` }), {}, line)
  }
})

test('a pod is detected by the files that every pod has', async (t) => {
  const files = {
    '/proc/self/cgroup': '0::/',
    '/proc/self/mountinfo': [
      `4 2 8:1 /var/lib/containerd/io.containerd.grpc.v1.cri/sandboxes/${ID}/hostname /etc/hostname rw - ext4 /dev/sda1 rw`,
      `5 2 8:1 /var/lib/kubelet/pods/${POD}/etc-hosts /etc/hosts rw - ext4 /dev/sda1 rw`,
      `6 2 8:1 /var/lib/kubelet/pods/${POD}/containers/web/1f2e3d4c /dev/termination-log rw - ext4 /dev/sda1 rw`
    ].join('\n'),
    '/var/run/secrets/kubernetes.io/serviceaccount/namespace': 'shop\n'
  }
  const env = { KUBERNETES_SERVICE_HOST: '10.0.0.1', HOSTNAME: 'web-7f9c-x2x' }
  t.same(detect(env, files), {
    'k8s.pod.name': 'web-7f9c-x2x', 'k8s.pod.uid': POD, 'k8s.namespace.name': 'shop', 'k8s.container.name': 'web'
  })
  t.same(detect({ HOSTNAME: 'laptop' }, files), {}, 'not without Kubernetes')
})

test('a pod is detected by the downward API', async (t) => {
  t.same(detect({
    KUBERNETES_SERVICE_HOST: '10.0.0.1', HOSTNAME: 'node-1', NODE_NAME: 'node-1', POD_NAME: 'web-0', POD_UID: POD, POD_NAMESPACE: 'shop', CONTAINER_NAME: 'web'
  }), { 'k8s.pod.name': 'web-0', 'k8s.pod.uid': POD, 'k8s.namespace.name': 'shop', 'k8s.node.name': 'node-1', 'k8s.container.name': 'web' })
  t.same(detect({ KUBERNETES_SERVICE_HOST: '10.0.0.1', HOSTNAME: 'node-1', OTEL_RESOURCE_ATTRIBUTES_NODE_NAME: 'node-1' }), { 'k8s.node.name': 'node-1' }, 'the host\'s network')
})

test('functions and clouds are detected by their variables', async (t) => {
  t.same(detect({
    AWS_LAMBDA_FUNCTION_NAME: 'orders',
    AWS_LAMBDA_FUNCTION_VERSION: '$LATEST',
    AWS_REGION: 'eu-central-1',
    AWS_LAMBDA_LOG_STREAM_NAME: '2026/11/21/[$LATEST]abc',
    AWS_LAMBDA_FUNCTION_MEMORY_SIZE: '512',
    AWS_LAMBDA_LOG_GROUP_NAME: '/aws/lambda/orders'
  }), {
    'cloud.provider': 'aws',
    'cloud.platform': 'aws_lambda',
    'cloud.region': 'eu-central-1',
    'faas.name': 'orders',
    'faas.version': '$LATEST',
    'faas.instance': '2026/11/21/[$LATEST]abc',
    'faas.max_memory': 536870912,
    'aws.log.group.names': ['/aws/lambda/orders']
  })
  t.same(detect({ K_SERVICE: 'shop', K_REVISION: 'shop-00002' }), { 'cloud.provider': 'gcp', 'cloud.platform': 'gcp_cloud_run', 'faas.name': 'shop', 'faas.version': 'shop-00002' })
  t.same(detect({ K_SERVICE: 'shop', K_REVISION: '2', FUNCTION_TARGET: 'main' }), { 'cloud.provider': 'gcp', 'cloud.platform': 'gcp_cloud_functions', 'faas.name': 'shop', 'faas.version': '2' })
  t.same(detect({ K_SERVICE: 'shop', KUBERNETES_SERVICE_HOST: '10.0.0.1' }), { 'faas.name': 'shop' }, 'Knative somewhere')
  t.same(detect({ CLOUD_RUN_JOB: 'nightly', CLOUD_RUN_EXECUTION: 'nightly-x', CLOUD_RUN_TASK_INDEX: '0' }), {
    'cloud.provider': 'gcp', 'cloud.platform': 'gcp_cloud_run', 'faas.name': 'nightly', 'gcp.cloud_run.job.execution': 'nightly-x', 'gcp.cloud_run.job.task_index': 0
  })
  t.same(detect({ GAE_SERVICE: 'default', GAE_VERSION: '7', GAE_INSTANCE: 'i1' }), { 'cloud.provider': 'gcp', 'cloud.platform': 'gcp_app_engine', 'faas.name': 'default', 'faas.version': '7', 'faas.instance': 'i1' })
  t.same(detect({ WEBSITE_SITE_NAME: 'shop', REGION_NAME: 'West Europe' }), { 'cloud.provider': 'azure', 'cloud.platform': 'azure.app_service', 'cloud.region': 'West Europe' })
  t.same(detect({ WEBSITE_SITE_NAME: 'shop', FUNCTIONS_EXTENSION_VERSION: '~4', WEBSITE_INSTANCE_ID: '9' }), { 'cloud.provider': 'azure', 'cloud.platform': 'azure.functions', 'faas.name': 'shop', 'faas.instance': '9' })
  t.same(detect({ ECS_CONTAINER_METADATA_URI_V4: 'http://169.254.170.2/v4/x', AWS_REGION: 'eu-west-1' }), { 'cloud.provider': 'aws', 'cloud.platform': 'aws_ecs', 'cloud.region': 'eu-west-1' })
  t.same(detect({ VERCEL: '1', VERCEL_REGION: 'fra1', AWS_LAMBDA_FUNCTION_NAME: 'x', AWS_REGION: 'eu-central-1' }), { 'cloud.region': 'fra1' })
})

test('values that are long, empty or not a number do no harm', async (t) => {
  t.equal(detect({ K_SERVICE: 'x'.repeat(100_000) })['faas.name'].length, 1024)
  t.same(detect({ K_SERVICE: ' ', AWS_LAMBDA_FUNCTION_NAME: '' }), {})
  t.notOk('faas.max_memory' in detect({ AWS_LAMBDA_FUNCTION_NAME: 'x', AWS_LAMBDA_FUNCTION_MEMORY_SIZE: '512MB' }))
  for (const text of ['/docker/'.repeat(8000), '/containers/'.repeat(5000), `/${'a'.repeat(65000)}`, '-'.repeat(65536)]) {
    t.same(detect({ KUBERNETES_SERVICE_HOST: 'x' }, { '/proc/self/cgroup': text, '/proc/self/mountinfo': text }), {})
  }
})

test('on this machine, only existing files are read, and at most 64 KiB of them', async (t) => {
  const found = detectPlatform(new Environment({}))
  t.type(found, 'object')
  if (found['container.id'] !== undefined) t.match(found['container.id'], /^[0-9a-f]{64}$|^[0-9a-f]{32}-\d+$/)
})

function detect (variables, files = {}) {
  return detectPlatform(new Environment(variables), (path) => files[path] ?? '')
}
